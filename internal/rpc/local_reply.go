package rpc

import (
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// messagePrefix is the bytes before each message: a flag and the length.
const messagePrefix = 5

// takeMessage takes the next message into m. It returns io.EOF after the last one of a
// call that has succeeded. Another goroutine reads frames.
func (c *localCall) takeMessage(m any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		raw, err := c.nextMessage()
		if err != nil {
			return err
		}
		if raw != nil {
			c.updateWindows()
			return decodeMessage(raw, m)
		}
		if c.result != nil {
			return c.endError()
		}
		c.isAwaited = true
		c.updateWindows()
		c.changed.Wait()
		c.isAwaited = false
	}
}

// takeReply takes the only message of a call that has ended.
func (c *localCall) takeReply(m any) error {
	if err := c.result.Err(); err != nil {
		return err
	}
	raw, err := c.nextMessage()
	if err == nil && raw == nil {
		err = status.Error(codes.Internal, "the server ended the call without a reply")
	}
	if err != nil {
		return err
	}
	return decodeMessage(raw, m)
}

// nextMessage returns the next message if all of it is there, else nil; c.mu is locked.
func (c *localCall) nextMessage() ([]byte, error) {
	if len(c.received) < messagePrefix {
		return nil, nil
	}
	if c.received[0] != 0 {
		return nil, status.Error(codes.Internal, "a compressed message, which was not wanted")
	}
	n := int64(binary.BigEndian.Uint32(c.received[1:]))
	if n > maxMessageSize {
		return nil, status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", n,
			maxMessageSize)
	}
	end := messagePrefix + int(n)
	if len(c.received) < end {
		return nil, nil
	}
	raw := c.received[messagePrefix:end:end]
	c.received = c.received[end:]
	return raw, nil
}

func decodeMessage(raw []byte, m any) error {
	if err := proto.Unmarshal(raw, m.(proto.Message)); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// endError is the error of a call that has ended, io.EOF if it has succeeded.
func (c *localCall) endError() error {
	if err := c.result.Err(); err != nil {
		return err
	}
	return io.EOF
}

// applyHeaders applies the headers before the first message, or the status after the
// last; c.mu is locked.
func (c *localCall) applyHeaders(f *http2.MetaHeadersFrame) {
	md := metadata.MD{}
	for _, h := range f.RegularFields() {
		md.Append(h.Name, h.Value)
	}
	if !f.StreamEnded() {
		c.header = md
		return
	}
	c.trailer = md
	if http := f.PseudoValue("status"); http != "" && http != "200" {
		c.result = status.New(codes.Unknown, "unexpected HTTP status code received from server: "+http)
		return
	}
	if f.Truncated {
		c.result = status.New(codes.Internal, "the status of the server is too long")
		return
	}
	c.result = trailerStatus(md)
}

// trailerStatus is the status in the trailer of a call.
func trailerStatus(md metadata.MD) *status.Status {
	first := func(name string) string { return strings.Join(md[name][:min(len(md[name]), 1)], "") }
	code, err := strconv.ParseUint(first("grpc-status"), 10, 32)
	if err != nil {
		return status.New(codes.Unknown, "the server sent no status that can be read")
	}
	text := first("grpc-message")
	if decoded, err := url.PathUnescape(text); err == nil {
		text = decoded
	}
	st := status.New(codes.Code(code), text)
	details := first("grpc-status-details-bin")
	if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(details, "=")); err == nil && len(raw) > 0 {
		p := st.Proto()
		if proto.Unmarshal(raw, p) == nil && p.GetCode() == int32(code) {
			return status.FromProto(p)
		}
	}
	return st
}

// resetStatus is the status of a call that the server has reset, as gRPC has it. A server
// that observes the deadline cancels a call that is late.
func resetStatus(why http2.ErrCode, isLate bool) *status.Status {
	code := codes.Internal
	switch why {
	case http2.ErrCodeRefusedStream:
		code = codes.Unavailable
	case http2.ErrCodeCancel:
		if code = codes.Canceled; isLate {
			code = codes.DeadlineExceeded
		}
	case http2.ErrCodeFlowControl, http2.ErrCodeEnhanceYourCalm:
		code = codes.ResourceExhausted
	case http2.ErrCodeInadequateSecurity:
		code = codes.PermissionDenied
	}
	return status.Newf(code, "stream terminated by RST_STREAM with error code: %v", why)
}
