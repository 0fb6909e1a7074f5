package shell

import (
	"errors"
	"io"
	"syscall"
)

// ptyReader reads the output of a terminal from its master. Linux returns EIO when the
// last process has closed the terminal. On a busy machine it can do so while the last
// output is still in the line discipline; another read returns that.
type ptyReader struct{ master io.Reader }

func (w ptyReader) Read(p []byte) (int, error) {
	n, err := w.master.Read(p)
	if n == 0 && errors.Is(err, syscall.EIO) {
		return w.master.Read(p)
	}
	return n, err
}
