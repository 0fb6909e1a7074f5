package object

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// stallReader is the data of a request. It ends the request if nobody takes the data. The
// library may still read when the request has ended.
type stallReader struct {
	from   io.Reader
	cancel context.CancelFunc

	mu      sync.Mutex
	timer   *time.Timer // since the first read
	ended   bool
	stalled bool  // nobody took the data
	err     error // of reading: the data could not be read here
}

// Read implements io.Reader.
func (r *stallReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	switch {
	case r.ended:
		r.mu.Unlock()
		return 0, context.Canceled
	case r.timer == nil:
		r.timer = time.AfterFunc(stallTimeout, r.stop)
	default:
		r.timer.Reset(stallTimeout)
	}
	r.mu.Unlock()
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	return n, err
}

// stop ends a request that has stalled.
func (r *stallReader) stop() {
	r.mu.Lock()
	r.stalled = !r.ended
	r.mu.Unlock()
	r.cancel()
}

// end ends the reader, and returns what went wrong with it.
func (r *stallReader) end() (stalled bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	return r.stalled, r.err
}
