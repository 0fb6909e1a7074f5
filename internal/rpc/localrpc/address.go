package localrpc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// SocketPath returns the path in an address "unix:/path".
func SocketPath(addr string) (string, error) {
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok || !filepath.IsAbs(path) {
		return "", fmt.Errorf("address %q: %w: it is no socket of this host", addr, roost.Invalid)
	}
	return path, nil
}

// ShortPath returns a name of at most 107 bytes for a socket. The kernel accepts no
// longer one (unix(7)), and directories of tests and homes are longer than that. The
// short name leads through a descriptor of the socket's directory; done closes it.
func ShortPath(path string) (short string, done func(), err error) {
	if len(path) < 104 {
		return path, func() {}, nil
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), func() { unix.Close(fd) }, nil
}

// DialSocket connects to a socket. It does not use package net, whose resolver and
// tables of names would be loaded, too. The connection succeeds or fails at once.
func DialSocket(path string) (*os.File, error) {
	short, done, err := ShortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("dial unix %s: %w", short, os.NewSyscallError("socket", err))
	}
	for {
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: short}); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("dial unix %s: %w", short, os.NewSyscallError("connect", err))
	}
	return os.NewFile(uintptr(fd), path), nil
}
