package localrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/codes"
)

// CallError is a call that has failed: what the server answered, or what became of the
// connection. It is the status of gRPC without its library.
type CallError struct {
	Code    codes.Code
	Message string
	Details []byte // the message google.rpc.Status as the server sent it; may be empty
}

// Error is the text that gRPC gives to the status.
func (e *CallError) Error() string {
	return fmt.Sprintf("rpc error: code = %s desc = %s", e.Code, e.Message)
}

func callErrorf(code codes.Code, format string, args ...any) *CallError {
	return &CallError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// contextError is the error of a call whose context has ended.
func contextError(err error) *CallError {
	code := codes.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = codes.DeadlineExceeded
	}
	return &CallError{Code: code, Message: err.Error()}
}

// StatusCode is the code of the call's end.
func (e *CallError) StatusCode() codes.Code { return e.Code }

// ReceivedError is an error that was received: its own text and its kind.
type ReceivedError struct {
	Message string
	Kind    roost.ErrorKind
	Code    codes.Code
}

func (e *ReceivedError) Error() string { return e.Message }

// StatusCode is the code of the call's end.
func (e *ReceivedError) StatusCode() codes.Code { return e.Code }

// Unwrap returns the kind.
func (e *ReceivedError) Unwrap() error { return e.Kind }

// DecodeError converts a CallError into an error whose kind errors.Is finds. Other errors
// are unchanged.
func DecodeError(err error) error {
	var call *CallError
	if !errors.As(err, &call) {
		return err
	}
	if kind, ok := detailKind(call.Details); ok {
		return &ReceivedError{unquoteCause(call.Message), kind, call.Code}
	}
	return call.withoutDetails()
}

// withoutDetails is DecodeError for a status that names no kind: the code implies one.
func (e *CallError) withoutDetails() error {
	kind := roost.Internal
	switch e.Code {
	case codes.Unavailable, codes.DeadlineExceeded:
		kind = roost.Unavailable
	case codes.Unauthenticated:
		kind = roost.Unauthenticated
	case codes.PermissionDenied:
		kind = roost.PermissionDenied
	case codes.ResourceExhausted:
		kind = roost.Exhausted
	case codes.Canceled:
		return context.Canceled
	}
	return &ReceivedError{rewriteSizeError(unquoteCause(e.Message)), kind, e.Code}
}

// The fields of google.rpc.Status, of google.protobuf.Any, and of UInt32Value.
const (
	statusCodeField    = 1
	statusMessageField = 2
	statusDetailsField = 3
	anyTypeField       = 1
	anyValueField      = 2
	numberField        = 1
	kindTypeSuffix     = "/google.protobuf.UInt32Value"
)

// statusFields returns the code and the message of a google.rpc.Status.
func statusFields(status []byte) (code int32, message string, ok bool) {
	ok = eachField(status, func(number protowire.Number, n uint64, text []byte) {
		switch number {
		case statusCodeField:
			code = int32(n)
		case statusMessageField:
			message = string(text)
		}
	})
	return code, message, ok
}

// detailKind returns the kind of error in a google.rpc.Status, which is its only detail
// that is a number.
func detailKind(status []byte) (kind roost.ErrorKind, found bool) {
	eachField(status, func(number protowire.Number, _ uint64, detail []byte) {
		if number != statusDetailsField || found {
			return
		}
		isKind, value := false, []byte(nil)
		eachField(detail, func(number protowire.Number, _ uint64, text []byte) {
			switch number {
			case anyTypeField:
				isKind = strings.HasSuffix(string(text), kindTypeSuffix)
			case anyValueField:
				value = text
			}
		})
		if isKind {
			found = eachField(value, func(number protowire.Number, n uint64, _ []byte) {
				if number == numberField {
					kind = roost.ErrorKind(uint32(n))
				}
			})
		}
	})
	return kind, found
}

// eachField calls f with each field of an encoded message, and reports whether it is one.
// F gets the number of a varint, and the bytes of a text or message.
func eachField(message []byte, f func(number protowire.Number, n uint64, text []byte)) bool {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return false
		}
		message = message[size:]
		var n uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return false
		}
		message = message[size:]
		f(number, n, text)
	}
	return true
}

// rewriteSizeError replaces gRPC's text about a message that was too long to read by
// Roost's own text.
func rewriteSizeError(text string) string {
	var size, most int
	if n, _ := fmt.Sscanf(text, "grpc: received message larger than max (%d vs. %d)", &size, &most); n != 2 {
		return text
	}
	return fmt.Sprintf("%v: the message has %d bytes, and %d is the most", roost.Exhausted, size, most)
}

// connErrorPrefix begins gRPC's error for a failed connection; the cause follows as a
// quoted string.
const connErrorPrefix = "connection error: desc = "

// unquoteCause removes the quotes that gRPC puts around the cause of a failed connection.
// In them, quotes of names would be shown as \"n1\". The prefix stays: it distinguishes a
// failed connection from a refusal.
func unquoteCause(text string) string {
	before, after, found := strings.Cut(text, connErrorPrefix)
	if !found {
		return text
	}
	quoted, err := strconv.QuotedPrefix(after)
	if err != nil {
		return text
	}
	cause, err := strconv.Unquote(quoted)
	if err != nil {
		return text
	}
	return before + "connection error: " + cause + after[len(quoted):]
}
