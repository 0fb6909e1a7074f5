package shell

import (
	"errors"
	"io"
	"syscall"
)

// ptyReader reads what has been written to a terminal, from its master. Linux says EIO
// when the last that had the terminal open has closed it, and on a busy machine it can
// say so while what was written last is still on its way through the line discipline;
// another read finds that.
type ptyReader struct{ master io.Reader }

func (w ptyReader) Read(p []byte) (int, error) {
	n, err := w.master.Read(p)
	if n == 0 && errors.Is(err, syscall.EIO) {
		return w.master.Read(p)
	}
	return n, err
}
