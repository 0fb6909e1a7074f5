package rpc

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
)

// ClientConn is a connection for the calls of a command: a LocalConn, or one of gRPC.
type ClientConn interface {
	grpc.ClientConnInterface
	io.Closer
}

// LocalConn makes a command's calls to a daemon of this host over its unix socket.
//
// A connection of gRPC starts a resolver, a balancer and five goroutines, and needs two
// round trips before the first call. That takes longer than everything else that a
// command does to submit a job. A LocalConn sends the request together with the preface
// of HTTP/2, and starts no goroutine for a call with one reply.
//
// Each call has a socket of its own while it runs, so a socket has one stream at a time.
// The next call reuses it. Calls that send more than one message take a connection of
// gRPC. A LocalConn is safe for concurrent use.
type LocalConn struct {
	addr, path string

	mu     sync.Mutex
	closed bool
	idle   *localSocket              // of an ended call, for the next one; may be nil
	active map[*localSocket]struct{} // of calls under way
	full   *grpc.ClientConn          // for calls that send more than one message; may be nil
}

// DialLocal returns a connection for the calls of a command to the socket of a daemon. It
// does not connect: calls do.
func DialLocal(addr string) (*LocalConn, error) {
	network, path, err := SplitAddress(addr)
	if err == nil && network != "unix" {
		err = fmt.Errorf("address %q: %w: it is no socket of this host", addr, roost.Invalid)
	}
	if err != nil {
		return nil, err
	}
	return &LocalConn{addr: addr, path: path, active: map[*localSocket]struct{}{}}, nil
}

// Close closes all sockets. Calls under way fail.
func (l *LocalConn) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for s := range l.active {
		s.conn.Close()
	}
	if l.idle != nil {
		l.idle.conn.Close()
	}
	if l.full != nil {
		return l.full.Close()
	}
	return nil
}

// errConnClosed is the error of calls after Close.
var errConnClosed = status.Error(codes.Canceled, "the connection is closed")

// fullConn returns the connection of gRPC.
func (l *LocalConn) fullConn() (*grpc.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errConnClosed
	}
	if l.full == nil {
		conn, err := Dial(l.addr, nil, "")
		if err != nil {
			return nil, err
		}
		l.full = conn
	}
	return l.full, nil
}

// Invoke makes a call with one request and one reply.
func (l *LocalConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if !areStatic(opts) {
		conn, err := l.fullConn()
		if err != nil {
			return err
		}
		return conn.Invoke(ctx, method, args, reply, opts...)
	}
	call, err := l.start(ctx, method, args)
	if err != nil {
		return err
	}
	defer call.finish()
	call.isAwaited = true // and so no flow control holds up a long reply
	call.readAll()
	return call.takeReply(reply)
}

// NewStream begins a call. Calls that send more than one message take gRPC.
func (l *LocalConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if desc.ClientStreams || !areStatic(opts) {
		conn, err := l.fullConn()
		if err != nil {
			return nil, err
		}
		return conn.NewStream(ctx, desc, method, opts...)
	}
	return &localStream{conn: l, ctx: ctx, method: method}, nil
}

// areStatic reports whether options are only those that generated code adds.
func areStatic(opts []grpc.CallOption) bool {
	for _, o := range opts {
		if _, ok := o.(grpc.StaticMethodCallOption); !ok {
			return false
		}
	}
	return true
}

// start sends the request of a call.
func (l *LocalConn) start(ctx context.Context, method string, args any) (*localCall, error) {
	request, err := proto.Marshal(args.(proto.Message))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	s, err := l.takeSocket(ctx)
	if err != nil {
		return nil, err
	}
	call := newLocalCall(ctx, l, s)
	call.send(method, request)
	return call, nil
}

// takeSocket returns the idle socket if its daemon is still there, or connects.
func (l *LocalConn) takeSocket(ctx context.Context) (*localSocket, error) {
	l.mu.Lock()
	s := l.idle
	l.idle = nil
	l.mu.Unlock()
	if s != nil && !s.isSilent() {
		s.conn.Close()
		s = nil
	}
	if s == nil {
		conn, err := dialUnix(ctx, l.path)
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		if err != nil {
			return nil, status.Errorf(codes.Unavailable, "%s%q", connErrorPrefix,
				"transport: Error while dialing: "+err.Error())
		}
		s = newLocalSocket(conn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		s.conn.Close()
		return nil, errConnClosed
	}
	l.active[s] = struct{}{}
	return s, nil
}

// release is called when a call has ended. A socket that may be reused becomes idle.
func (l *LocalConn) release(s *localSocket, reusable bool) {
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
