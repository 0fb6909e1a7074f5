package localrpc

import (
	"context"
	"io"

	"github.com/roost-batch/roost/internal/wire/codes"
)

// localStream is a call with many requests or many replies. The caller sends all
// requests, calls CloseSend, and then reads replies to the end or ends the context.
type localStream struct {
	conn      *Conn
	ctx       context.Context
	method    string
	isSingle  bool       // there is one request
	call      *localCall // nil: nothing was sent
	isAwaited bool       // somebody waits for the reply while the request is sent
	isClosed  bool       // the request has ended
}

// SendMsg sends a request. It returns io.EOF if the call has ended: the replies tell why.
func (s *localStream) SendMsg(m any) error {
	err := s.send(m, s.isSingle)
	if s.isSingle && s.isClosed {
		s.read()
		return nil // if the call has ended already, its end tells why
	}
	return err
}

func (s *localStream) send(m any, isLast bool) (err error) {
	if s.isClosed {
		return callErrorf(codes.Internal, "%s: the request has ended", s.method)
	}
	text, err := encodeMessage(m)
	if err != nil {
		return err
	}
	if s.call == nil {
		if s.call, err = s.conn.start(s.ctx, s.method); err != nil {
			return err
		}
		s.call.isAwaited = s.isAwaited
	}
	s.isClosed = isLast
	if !s.call.sendMessage(text, isLast) {
		return io.EOF
	}
	return nil
}

// CloseSend ends the request, and begins to read replies.
func (s *localStream) CloseSend() error {
	if s.isClosed {
		return nil
	}
	if s.call == nil {
		return callErrorf(codes.Internal, "%s takes a request first", s.method)
	}
	s.isClosed = true
	s.call.sendData(nil, true)
	s.read()
	return nil
}

// read reads replies while others take them.
func (s *localStream) read() {
	go func() {
		s.call.readAll()
		s.call.finish()
	}()
}

// RecvMsg takes the next reply, and returns io.EOF after the last.
func (s *localStream) RecvMsg(m any) error {
	if s.call == nil {
		return callErrorf(codes.Internal, "%s takes a request first", s.method)
	}
	return s.call.takeMessage(m)
}
