package kernfs

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// OpenFiles reads control files over and over, and keeps them open in between. The kernel
// writes the text of such a file anew for each read from its beginning. The zero value is
// ready; its methods are safe for concurrent use.
//
// A read that leaves room in the buffer has reached the end of the text: the kernel
// writes the text of these files in one piece (seq_file with one record), and would write
// it once more only to say that nothing follows. So it is not for lists, such as
// cgroup.procs, which the kernel writes line by line.
type OpenFiles struct {
	mu     sync.Mutex
	open   map[string]int // descriptors by path
	buffer []byte
	closed bool
}

// Read calls f with the text of a file; the text is valid until f returns. A file that
// its group has taken with it is ENODEV, an *fs.PathError, like one that is not there.
func (o *OpenFiles) Read(path string, f func(text []byte)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	fd, known := o.open[path]
	if !known {
		var err error
		if fd, err = openNonblocking(path, unix.O_RDONLY); err != nil {
			return err
		}
		if o.closed {
			defer unix.Close(fd)
		} else {
			if o.open == nil {
				o.open = make(map[string]int)
			}
			o.open[path] = fd
		}
	}
	text, err := o.readFromStart(fd)
	if err != nil {
		return wrapError("read", path, err)
	}
	f(text)
	return nil
}

// readFromStart reads a whole file into the buffer.
func (o *OpenFiles) readFromStart(fd int) ([]byte, error) {
	if o.buffer == nil {
		o.buffer = make([]byte, os.Getpagesize())
	}
	size := 0
	for size < maxRead {
		if size == len(o.buffer) {
			o.buffer = append(o.buffer, make([]byte, len(o.buffer))...)
		}
		n, err := retryInterrupted(func() (int, error) { return unix.Pread(fd, o.buffer[size:], int64(size)) })
		if err != nil {
			return nil, err
		}
		size += max(n, 0)
		if n <= 0 || size < len(o.buffer) {
			return o.buffer[:size], nil
		}
	}
	return nil, unix.EFBIG
}

// Close closes the files. Later reads open and close theirs.
func (o *OpenFiles) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, fd := range o.open {
		unix.Close(fd)
	}
	o.open, o.buffer, o.closed = nil, nil, true
}
