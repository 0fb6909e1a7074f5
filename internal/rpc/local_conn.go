package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc/localrpc"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// ClientConn is a connection for the calls of a command: a LocalConn, or one of gRPC.
type ClientConn interface {
	grpc.ClientConnInterface
	io.Closer
}

// LocalConn makes calls over the unix socket of a daemon of this host, for code that was
// generated for gRPC. Calls whose sides both send many messages take a connection of
// gRPC; all others a connection of package localrpc.
type LocalConn struct {
	addr  string
	local *localrpc.Conn

	mu     sync.Mutex
	closed bool
	full   *grpc.ClientConn // may be nil
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
	return &LocalConn{addr: addr, local: localrpc.Dial(path)}, nil
}

// Close closes all sockets. Calls under way fail.
func (l *LocalConn) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	err := l.local.Close()
	if l.full != nil {
		err = errors.Join(err, l.full.Close())
	}
	return err
}

// fullConn returns the connection of gRPC.
func (l *LocalConn) fullConn() (*grpc.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, status.Error(codes.Canceled, "the connection is closed")
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
	return callStatus(l.local.Invoke(ctx, method, args, reply))
}

// NewStream begins a call.
func (l *LocalConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	kind := scheddapi.ManyReplies
	if desc.ClientStreams {
		kind = scheddapi.ManyRequests
	}
	if desc.ClientStreams && desc.ServerStreams || !areStatic(opts) {
		conn, err := l.fullConn()
		if err != nil {
			return nil, err
		}
		return conn.NewStream(ctx, desc, method, opts...)
	}
	s, err := l.local.NewStream(ctx, method, kind)
	return localStream{s, ctx}, callStatus(err)
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

// localStream is a stream of localrpc for code that was generated for gRPC. It has no
// headers: no call of Roost has any.
type localStream struct {
	scheddapi.Stream
	ctx context.Context
}

func (s localStream) Context() context.Context     { return s.ctx }
func (s localStream) Header() (metadata.MD, error) { return nil, nil }
func (s localStream) Trailer() metadata.MD         { return nil }
func (s localStream) SendMsg(m any) error          { return callStatus(s.Stream.SendMsg(m)) }
func (s localStream) CloseSend() error             { return callStatus(s.Stream.CloseSend()) }
func (s localStream) RecvMsg(m any) error          { return callStatus(s.Stream.RecvMsg(m)) }

// callStatus converts an error of localrpc into one of gRPC; others are unchanged.
func callStatus(err error) error {
	var call *localrpc.CallError
	if !errors.As(err, &call) {
		return err
	}
	p := &spb.Status{Code: int32(call.Code), Message: call.Message}
	if len(call.Details) > 0 && proto.Unmarshal(call.Details, p) != nil {
		p = &spb.Status{Code: int32(call.Code), Message: call.Message}
	}
	return status.FromProto(p).Err()
}
