package localrpc

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire/codes"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Conn makes a command's calls to a daemon of this host over its unix socket.
//
// A connection of gRPC starts a resolver, a balancer and five goroutines, and needs two
// round trips before the first call. That takes longer than everything else that a
// command does to submit a job. A Conn sends the request together with the preface of
// HTTP/2, and starts no goroutine for a call with one reply.
//
// Each call has a socket of its own while it runs, so a socket has one stream at a time.
// The next call reuses it. Requests of a call are sent before its first reply is read.
// Errors of calls are CallErrors. A Conn is safe for concurrent use.
type Conn struct {
	path string

	mu     sync.Mutex
	closed bool
	idle   *localSocket              // of an ended call, for the next one; may be nil
	active map[*localSocket]struct{} // of calls under way
}

// Dial returns a connection to the socket of a daemon. It does not connect: calls do.
func Dial(path string) *Conn { return &Conn{path: path, active: map[*localSocket]struct{}{}} }

// Close closes all sockets. Calls under way fail.
func (l *Conn) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for s := range l.active {
		s.conn.Close()
	}
	if l.idle != nil {
		l.idle.conn.Close()
	}
	return nil
}

// Invoke makes a call with one request and one reply.
func (l *Conn) Invoke(ctx context.Context, method string, args, reply any) error {
	s := &localStream{conn: l, ctx: ctx, method: method}
	s.isAwaited = true // and so no flow control holds up a long reply
	if err := s.send(args, true); err != nil && err != io.EOF {
		return err
	}
	defer s.call.finish()
	s.call.readAll()
	return s.call.takeReply(reply)
}

// NewStream prepares a call. The first message starts it. Calls whose sides both send
// many messages take a connection of gRPC.
func (l *Conn) NewStream(ctx context.Context, method string, kind scheddapi.StreamKind) (scheddapi.Stream, error) {
	if kind == scheddapi.TwoWay {
		return nil, callErrorf(codes.Unimplemented, "%s: it needs a connection of gRPC", method)
	}
	return &localStream{conn: l, ctx: ctx, method: method, isSingle: kind == scheddapi.ManyReplies}, nil
}

// start connects for a call, whose headers are written with its first message.
func (l *Conn) start(ctx context.Context, method string) (*localCall, error) {
	s, err := l.takeSocket(ctx)
	if err != nil {
		return nil, err
	}
	call := newLocalCall(ctx, l, s)
	call.begin(method)
	return call, nil
}

func encodeMessage(m any) ([]byte, error) {
	text, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return nil, callErrorf(codes.Internal, "%v", err)
	}
	return text, nil
}

// takeSocket returns the idle socket if its daemon is still there, or connects.
func (l *Conn) takeSocket(ctx context.Context) (*localSocket, error) {
	l.mu.Lock()
	s := l.idle
	l.idle = nil
	l.mu.Unlock()
	if s != nil && !s.isSilent() {
		s.conn.Close()
		s = nil
	}
	if ctx.Err() != nil {
		if s != nil {
			s.conn.Close()
		}
		return nil, contextError(ctx.Err())
	}
	if s == nil {
		conn, err := DialSocket(l.path)
		if err != nil {
			return nil, callErrorf(codes.Unavailable, "%s%q", connErrorPrefix,
				"transport: Error while dialing: "+err.Error())
		}
		s = newLocalSocket(conn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		s.conn.Close()
		return nil, callErrorf(codes.Canceled, "the connection is closed")
	}
	l.active[s] = struct{}{}
	return s, nil
}

// release is called when a call has ended. A socket that may be reused becomes idle.
func (l *Conn) release(s *localSocket, reusable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.active, s)
	if !reusable || l.closed || l.idle != nil {
		s.conn.Close()
		return
	}
	s.idleSince = time.Now()
	l.idle = s
}
