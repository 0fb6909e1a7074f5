package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/roost-batch/roost"
)

// link is the caller's end: it numbers requests, and hands each reply to the call that waits for it.
type link struct {
	conn    io.ReadWriteCloser
	numbers atomic.Uint64
	writes  chan outgoing // to the goroutine that owns the connection's writing half
	dead    chan struct{} // closed when the agent is gone
	ended   func() error  // reaps the process
	mu      sync.Mutex
	waiting map[uint64]chan answer
	once    sync.Once
}

type outgoing struct {
	q    request
	data []byte
}

type answer struct {
	r    reply
	data []byte
}

func newLink(conn io.ReadWriteCloser, ended func() error) *link {
	l := &link{conn: conn, writes: make(chan outgoing, 16), dead: make(chan struct{}), ended: ended, waiting: map[uint64]chan answer{}}
	go l.write()
	go l.read()
	return l
}

func (l *link) number() uint64 { return l.numbers.Add(1) }

// call asks and waits. data belongs to the link until it returns, and for a moment longer when ctx ended, so it is copied.
func (l *link) call(ctx context.Context, q request, data []byte) (reply, []byte, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, nil, err
	}
	q.ID = l.number()
	wait := make(chan answer, 1)
	l.mu.Lock()
	l.waiting[q.ID] = wait
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, q.ID)
		l.mu.Unlock()
	}()
	select {
	case l.writes <- outgoing{q, append([]byte(nil), data...)}:
	case <-ctx.Done():
		return reply{}, nil, ctx.Err()
	case <-l.dead:
		return reply{}, nil, errDead
	}
	select {
	case a := <-wait:
		if a.r.Error != "" {
			return a.r, nil, &agentError{a.r.Kind, a.r.Error}
		}
		return a.r, a.data, nil
	case <-ctx.Done():
		return reply{}, nil, ctx.Err()
	case <-l.dead:
		return reply{}, nil, errDead
	}
}

var errDead = fmt.Errorf("files agent: %w: it is not running any more", roost.Unavailable)

// agentError is an error that an agent told: its text names path and cause already.
type agentError struct {
	kind roost.Kind
	text string
}

func (e *agentError) Error() string { return e.text }
func (e *agentError) Unwrap() error { return e.kind }

// forget drops a handle without waiting for anything but room in the queue.
func (l *link) forget(handle uint64) {
	select {
	case l.writes <- outgoing{q: request{Op: opDrop, Handle: handle}}:
	case <-l.dead:
	}
}

func (l *link) write() {
	for {
		select {
		case o := <-l.writes:
			if writeMessage(l.conn, o.q, o.data) != nil {
				l.conn.Close()
				return
			}
		case <-l.dead:
			return
		}
	}
}

func (l *link) read() {
	defer close(l.dead)
	defer l.conn.Close()
	for {
		var a answer
		var err error
		if a.data, err = readMessage(l.conn, &a.r); err != nil {
			return
		}
		l.mu.Lock()
		wait := l.waiting[a.r.ID]
		delete(l.waiting, a.r.ID)
		l.mu.Unlock()
		if wait != nil {
			wait <- a
		}
	}
}

// close ends the agent and waits for it.
func (l *link) close() error {
	var err error
	l.once.Do(func() {
		l.conn.Close()
		<-l.dead
		err = l.ended()
	})
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
