package userfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/roost-batch/roost"
)

// agentConn is the caller's end of the connection. It numbers requests, and passes each
// reply to the call that waits for it.
type agentConn struct {
	conn       io.ReadWriteCloser
	lastNumber atomic.Uint64
	writes     chan queuedRequest // to the goroutine that writes to the connection
	dead       chan struct{}      // closed when the agent has ended
	reap       func() error       // reaps the process
	mu         sync.Mutex
	waiting    map[uint64]chan callReply
	once       sync.Once
}

type queuedRequest struct {
	request agentRequest
	data    []byte
}

type callReply struct {
	reply agentReply
	data  []byte
}

func newAgentConn(conn io.ReadWriteCloser, ended func() error) *agentConn {
	l := &agentConn{conn: conn, writes: make(chan queuedRequest, 16), dead: make(chan struct{}), reap: ended,
		waiting: map[uint64]chan callReply{}}
	go l.write()
	go l.read()
	return l
}

func (l *agentConn) nextNumber() uint64 { return l.lastNumber.Add(1) }

// call sends a request and waits for the reply. data is used for a moment longer if ctx
// ended, so it is copied.
func (l *agentConn) call(ctx context.Context, q agentRequest, data []byte) (agentReply, []byte, error) {
	if err := ctx.Err(); err != nil {
		return agentReply{}, nil, err
	}
	q.ID = l.nextNumber()
	wait := make(chan callReply, 1)
	l.mu.Lock()
	l.waiting[q.ID] = wait
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, q.ID)
		l.mu.Unlock()
	}()
	select {
	case l.writes <- queuedRequest{q, append([]byte(nil), data...)}:
	case <-ctx.Done():
		return agentReply{}, nil, ctx.Err()
	case <-l.dead:
		return agentReply{}, nil, errAgentDead
	}
	select {
	case a := <-wait:
		if a.reply.Error != "" {
			return a.reply, nil, &agentError{a.reply.Kind, a.reply.Error}
		}
		return a.reply, a.data, nil
	case <-ctx.Done():
		return agentReply{}, nil, ctx.Err()
	case <-l.dead:
		return agentReply{}, nil, errAgentDead
	}
}

var errAgentDead = fmt.Errorf("files agent: %w: it is not running any more", roost.Unavailable)

// agentError is an error that an agent returned: its text already has path and cause.
type agentError struct {
	kind roost.ErrorKind
	text string
}

func (e *agentError) Error() string { return e.text }
func (e *agentError) Unwrap() error { return e.kind }

// dropHandle drops a handle. It waits only for room in the queue.
func (l *agentConn) dropHandle(handle uint64) {
	select {
	case l.writes <- queuedRequest{request: agentRequest{Op: opDrop, Handle: handle}}:
	case <-l.dead:
	}
}

func (l *agentConn) write() {
	for {
		select {
		case o := <-l.writes:
			if writeMessage(l.conn, o.request, o.data) != nil {
				l.conn.Close()
				return
			}
		case <-l.dead:
			return
		}
	}
}

func (l *agentConn) read() {
	defer close(l.dead)
	defer l.conn.Close()
	for {
		var a callReply
		var err error
		if a.data, err = readMessage(l.conn, &a.reply); err != nil {
			return
		}
		l.mu.Lock()
		wait := l.waiting[a.reply.ID]
		delete(l.waiting, a.reply.ID)
		l.mu.Unlock()
		if wait != nil {
			wait <- a
		}
	}
}

// close ends the agent and waits for it.
func (l *agentConn) close() error {
	var err error
	l.once.Do(func() {
		l.conn.Close()
		<-l.dead
		err = l.reap()
	})
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
