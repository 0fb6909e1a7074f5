package userfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/roost-batch/roost"
)

// unreadableError returns an error with path and cause, without the name of the system
// call that package os puts first. unwritableError does so for writing.
func unreadableError(path string, err error) error {
	return fmt.Errorf("%s: %w: %w", path, roost.NoInput, causeOf(err))
}
func unwritableError(path string, err error) error {
	return fmt.Errorf("%s: %w: %w", path, roost.NoOutput, causeOf(err))
}

func causeOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// CheckName returns why a name from the other side is not allowed, or nil. A name must be
// local (filepath.IsLocal), clean, and without control bytes.
func CheckName(name string) error {
	if !filepath.IsLocal(name) || filepath.Clean(name) != name || name == "." || !isPrintable(name) {
		return fmt.Errorf("%q: %w: it is not a plain name below the directory", name, roost.Invalid)
	}
	return nil
}

// isPrintable reports whether a name can be sent. It must be UTF-8, as messages must, and
// have no control characters.
func isPrintable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

// openRegular opens a regular file: no device, and without waiting at a fifo.
func openRegular(base, name string) (f *os.File, info fs.FileInfo, err error) {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(base, name)
	}
	if filepath.IsAbs(name) {
		f, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	} else if err = CheckName(name); err == nil {
		f, err = openBelow(base, name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, nil, unreadableError(path, err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errors.New(fileKind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, nil, unreadableError(path, err)
	}
	return f, info, nil
}

func openBelow(base, name string, flags int, mode fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(name, flags, mode)
}

// fileKind returns the kind of a file that is not regular, for messages.
func fileKind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "it is a directory"
	case mode&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "it is a fifo"
	case mode&fs.ModeSocket != 0:
		return "it is a socket"
	}
	return "it is a device"
}

func entryOf(name string, info fs.FileInfo) TransferEntry {
	e := TransferEntry{Name: filepath.ToSlash(name), Mode: info.Mode().Perm(), Dir: info.IsDir(),
		Modified: info.ModTime()}
	if !e.Dir {
		e.Size = info.Size()
		e.Stored = min(e.Size, info.Sys().(*syscall.Stat_t).Blocks*blockSize)
	}
	return e
}

func stat(base, name string) ([]TransferEntry, error) {
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, unreadableError(base, err)
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, unreadableError(filepath.Join(base, name), err)
	}
	return []TransferEntry{entryOf(name, info)}, nil
}

func readAt(base, name string, offset int64) (data []byte, size int64, err error) {
	f, info, err := openRegular(base, name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if offset < 0 {
		offset = max(0, info.Size()+offset)
	}
	data = make([]byte, min(ChunkSize, max(0, info.Size()-offset)))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, unreadableError(f.Name(), err)
	}
	return data[:n], info.Size(), nil
}

func (s *agentServer) openReader(q *agentRequest) ([]TransferEntry, error) {
	f, info, err := openRegular(q.Base, q.Name)
	if err != nil {
		return nil, err
	}
	if q.Offset > 0 {
		if _, err := f.Seek(q.Offset, io.SeekStart); err != nil {
			f.Close()
			return nil, unreadableError(f.Name(), err)
		}
	}
	s.readers[q.Handle] = newExtentReader(f, info, q.Offset, q.Holes)
	e := entryOf(filepath.Base(q.Name), info)
	e.Version = fileVersion(info, time.Now())
	return []TransferEntry{e}, nil
}

// versionAge is how long a file must have been as it is. Within the steps of a file
// system's clock a second change looks like the first.
const versionAge = time.Second

// fileVersion returns a text that differs for two files, and for two states of a file.
func fileVersion(info fs.FileInfo, now time.Time) string {
	st := info.Sys().(*syscall.Stat_t)
	changed := time.Unix(st.Ctim.Unix())
	if now.Sub(changed) < versionAge {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d.%d.%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), changed.UnixNano())
}

func (s *agentServer) readChunk(handle uint64) (hole int64, data []byte, err error) {
	r := s.readers[handle]
	if r == nil {
		return 0, nil, fmt.Errorf("handle %d: %w", handle, roost.Invalid)
	}
	if hole, data, err = r.next(); err != nil {
		return 0, nil, unreadableError(r.file.Name(), err)
	}
	return hole, data, nil
}
