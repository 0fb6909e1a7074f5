package localrpc

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire/codes"
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
		if c.hasEnded {
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
	if c.result != nil {
		return c.result
	}
	raw, err := c.nextMessage()
	if err == nil && raw == nil {
		err = callErrorf(codes.Internal, "the server ended the call without a reply")
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
		return nil, callErrorf(codes.Internal, "a compressed message, which was not wanted")
	}
	n := int64(binary.BigEndian.Uint32(c.received[1:]))
	if n > MaxMessageSize {
		return nil, callErrorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", n,
			MaxMessageSize)
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
		return callErrorf(codes.Internal, "%v", err)
	}
	return nil
}

// endError is the error of a call that has ended, io.EOF if it has succeeded.
func (c *localCall) endError() error {
	if c.result != nil {
		return c.result
	}
	return io.EOF
}

// applyHeaders applies the headers before the first message, or the status after the
// last; c.mu is locked.
func (c *localCall) applyHeaders(f frame, fields headerFields) {
	if !f.has(endStreamFlag) {
		return
	}
	switch http := fields.values[":status"]; {
	case http != "" && http != "200":
		c.end(callErrorf(codes.Unknown, "unexpected HTTP status code received from server: %s", http))
	case fields.isTruncated:
		c.end(callErrorf(codes.Internal, "the status of the server is too long"))
	default:
		c.end(trailerError(fields.values))
	}
}

// trailerError is the status in the trailer of a call; nil for success.
func trailerError(trailer map[string]string) *CallError {
	code, err := strconv.ParseUint(trailer["grpc-status"], 10, 32)
	if err != nil {
		return callErrorf(codes.Unknown, "the server sent no status that can be read")
	}
	if code == uint64(codes.OK) {
		return nil
	}
	e := &CallError{Code: codes.Code(code), Message: percentDecoded(trailer["grpc-message"])}
	details := strings.TrimRight(trailer["grpc-status-details-bin"], "=")
	if raw, err := base64.RawStdEncoding.DecodeString(details); err == nil && len(raw) > 0 {
		if detailed, message, ok := statusFields(raw); ok && detailed == int32(code) {
			e.Message, e.Details = message, raw
		}
	}
	return e
}

// percentDecoded decodes a message of gRPC, which may not have bytes other than printable
// ASCII. One that is encoded wrongly is unchanged.
func percentDecoded(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var decoded strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			decoded.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return text
		}
		b, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return text
		}
		decoded.WriteByte(byte(b))
		i += 2
	}
	return decoded.String()
}

// errorCodeText is the name that RFC 9113 has for an error, or its number.
func errorCodeText(code uint32) string {
	names := []string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
		"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
		"ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}
	if int64(code) < int64(len(names)) {
		return names[code]
	}
	return fmt.Sprintf("unknown error code 0x%x", code)
}

// resetError is the error of a call that the server has reset, as gRPC has it. A server
// that observes the deadline cancels a call that is late.
func resetError(why uint32, isLate bool) *CallError {
	code := codes.Internal
	switch why {
	case refusedStream:
		code = codes.Unavailable
	case cancelled:
		if code = codes.Canceled; isLate {
			code = codes.DeadlineExceeded
		}
	case flowControlError, enhanceYourCalm:
		code = codes.ResourceExhausted
	case inadequateSecurity:
		code = codes.PermissionDenied
	}
	return callErrorf(code, "stream terminated by RST_STREAM with error code: %s", errorCodeText(why))
}
