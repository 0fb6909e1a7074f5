package scheddapi

import (
	"context"
	"io"
)

// StreamKind says which side of a call sends more than one message.
type StreamKind int

const (
	ManyReplies  StreamKind = iota // one request
	ManyRequests                   // one reply
	TwoWay
)

// Conn is a connection for calls of a command. Its errors are those of package localrpc:
// localrpc.DecodeError gives them their kind.
type Conn interface {
	Invoke(ctx context.Context, method string, args, reply any) error
	NewStream(ctx context.Context, method string, kind StreamKind) (Stream, error)
	io.Closer
}

// Stream is a call with many messages. RecvMsg returns io.EOF after the last; the caller
// reads to the end or ends the context.
type Stream interface {
	SendMsg(m any) error
	CloseSend() error
	RecvMsg(m any) error
}

// Receiver is the replies of a call.
type Receiver[Reply any] struct{ stream Stream }

// Recv returns the next reply, and io.EOF after the last.
func (r Receiver[Reply]) Recv() (*Reply, error) { return receive[Reply](r.stream) }

// Sender is the requests of a call with one reply.
type Sender[Request, Reply any] struct{ stream Stream }

// Send sends a request. It returns io.EOF if the call has ended: CloseAndRecv tells why.
func (s Sender[Request, Reply]) Send(m *Request) error { return s.stream.SendMsg(m) }

// CloseAndRecv ends the requests and returns the reply.
func (s Sender[Request, Reply]) CloseAndRecv() (*Reply, error) {
	if err := s.stream.CloseSend(); err != nil {
		return nil, err
	}
	return receive[Reply](s.stream)
}

// Exchange is a call whose sides both send many messages. One goroutine may send while
// another receives.
type Exchange[Request, Reply any] struct{ stream Stream }

// Send sends a request.
func (e Exchange[Request, Reply]) Send(m *Request) error { return e.stream.SendMsg(m) }

// CloseSend ends the requests.
func (e Exchange[Request, Reply]) CloseSend() error { return e.stream.CloseSend() }

// Recv returns the next reply, and io.EOF after the last.
func (e Exchange[Request, Reply]) Recv() (*Reply, error) { return receive[Reply](e.stream) }

func receive[Reply any](s Stream) (*Reply, error) {
	m := new(Reply)
	if err := s.RecvMsg(m); err != nil {
		return nil, err
	}
	return m, nil
}

func invoke[Reply any](ctx context.Context, conn Conn, method string, req any) (*Reply, error) {
	reply := new(Reply)
	if err := conn.Invoke(ctx, schedd+method, req, reply); err != nil {
		return nil, err
	}
	return reply, nil
}

func query[Reply any](ctx context.Context, conn Conn, method string, req any) (Receiver[Reply], error) {
	s, err := conn.NewStream(ctx, schedd+method, ManyReplies)
	if err == nil {
		err = s.SendMsg(req)
	}
	if err == nil {
		err = s.CloseSend()
	}
	return Receiver[Reply]{s}, err
}
