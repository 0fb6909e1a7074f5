package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// localStream is a call of a LocalConn with one request and many replies. Generated code
// calls SendMsg, CloseSend, and then RecvMsg until an error. The caller reads to the end
// or ends the context.
type localStream struct {
	conn   *LocalConn
	ctx    context.Context
	method string
	call   *localCall // nil: nothing was sent
}

// Context returns the context of the call.
func (s *localStream) Context() context.Context { return s.ctx }

// SendMsg sends the request. An error is that of the connection.
func (s *localStream) SendMsg(m any) (err error) {
	if s.call != nil {
		return status.Error(codes.Internal, s.method+" takes one request")
	}
	s.call, err = s.conn.start(s.ctx, s.method, m)
	if err != nil {
		return err
	}
	go func() {
		s.call.readAll()
		s.call.finish()
	}()
	return nil
}

// CloseSend does nothing: the request is the last message.
func (s *localStream) CloseSend() error { return nil }

// RecvMsg takes the next reply, and returns io.EOF after the last.
func (s *localStream) RecvMsg(m any) error {
	if s.call == nil {
		return status.Error(codes.Internal, s.method+" takes a request first")
	}
	return s.call.takeMessage(m)
}

// Header waits for the headers before the first reply.
func (s *localStream) Header() (metadata.MD, error) {
	if s.call == nil {
		return nil, nil
	}
	s.call.mu.Lock()
	defer s.call.mu.Unlock()
	for s.call.header == nil && s.call.result == nil {
		s.call.changed.Wait()
	}
	return s.call.header, nil
}

// Trailer returns what followed the last reply.
func (s *localStream) Trailer() metadata.MD {
	if s.call == nil {
		return nil
	}
	s.call.mu.Lock()
	defer s.call.mu.Unlock()
	return s.call.trailer
}
