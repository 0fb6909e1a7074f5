// Package kernfs reads and writes control files of the kernel: those of control groups
// and of sysfs.
//
// The naive way, os.ReadFile and os.File.Write, may never return. The kernel lets such
// files be polled, so package os registers them with the runtime's poller; if the kernel
// then returns EAGAIN, the runtime takes it for "not ready yet" and waits for an event
// that never comes. Here EAGAIN is an ordinary error: memory.reclaim returns it when less
// could be reclaimed than requested, a thermal zone when its sensor is inactive.
package kernfs

import (
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// maxRead bounds what ReadFile reads, in bytes: the kernel's tables are smaller, and an
// endless file is none of them.
const maxRead = 16 << 20

// WriteFile writes a text to an existing file in one write(2). The kernel's error, an
// *fs.PathError, may be EAGAIN. A call that a signal interrupts is repeated.
func WriteFile(path string, text []byte) error {
	fd, err := openNonblocking(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := retryInterrupted(func() (int, error) { return unix.Write(fd, text) })
	if err == nil && n != len(text) {
		err = io.ErrShortWrite
	}
	return wrapError("write", path, err)
}

// ReadFile reads a whole file. EAGAIN is returned as an error, an *fs.PathError, like any
// other.
func ReadFile(path string) ([]byte, error) {
	fd, err := openNonblocking(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for len(text) < maxRead {
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := retryInterrupted(func() (int, error) { return unix.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return text, wrapError("read", path, err)
		}
		if n <= 0 {
			return text, nil
		}
		text = text[:len(text)+n]
	}
	return text, wrapError("read", path, unix.EFBIG)
}

// openNonblocking opens a file and never blocks, not even for the other end of a fifo.
func openNonblocking(path string, mode int) (int, error) {
	fd, err := retryInterrupted(func() (int, error) { return unix.Open(path, mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	return fd, wrapError("open", path, err)
}

// retryInterrupted repeats a system call until no signal interrupts it.
func retryInterrupted(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR {
			return n, err
		}
	}
}

func wrapError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
