package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost"
)

// allKinds returns all kinds of errors. They are numbered from 1 without a gap, and
// beyond the last there is no text.
func allKinds() []roost.ErrorKind {
	var all []roost.ErrorKind
	for k := roost.ErrorKind(1); k.Error() != roost.ErrorKind(0).Error(); k++ {
		all = append(all, k)
	}
	return all
}

func TestKindsRoundTrip(t *testing.T) {
	for _, kind := range allKinds() {
		sent := fmt.Errorf("job 1.host: %w: because", kind)
		wire := Status(sent)
		if code := status.Code(wire); code == codes.OK || code == codes.Unknown {
			t.Errorf("%v: travels under %v", kind, code)
		}
		got := FromStatus(wire)
		if !errors.Is(got, kind) || KindOf(got) != kind || got.Error() != sent.Error() {
			t.Errorf("%v: got %q of kind %v", kind, got, KindOf(got))
		}
		if again := FromStatus(Status(fmt.Errorf("schedd: %w", got))); !errors.Is(again, kind) {
			t.Errorf("%v: got %v after two travels", kind, again)
		}
	}
}

func TestForeignErrors(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"no daemon there", status.Error(codes.Unavailable, "connection refused"), roost.Unavailable},
		{"too late", status.FromContextError(context.DeadlineExceeded).Err(), roost.Unavailable},
		{"called off", Status(context.Canceled), context.Canceled},
		{"no such method", status.Error(codes.Unimplemented, "unknown method"), roost.Internal},
		{"a kind from the future", Status(fmt.Errorf("x: %w", roost.ErrorKind(200))), roost.ErrorKind(200)},
	}
	for _, tt := range tests {
		if got := FromStatus(tt.err); !errors.Is(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if FromStatus(nil) != nil || Status(nil) != nil {
		t.Errorf("nil does not stay nil")
	}
	if plain := errors.New("x"); KindOf(plain) != roost.Internal {
		t.Errorf("an error without a kind: got %v", KindOf(plain))
	}
}

// TestUnquoted checks that the cause of a failed connection is shown unchanged.
func TestUnquoted(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: authentication handshake failed: peer \"n1\": unauthenticated: revoked"`: `connection error: transport: authentication handshake failed: peer "n1": unauthenticated: revoked`,
		`last error: connection error: desc = "connect: refused"; gave up`:                                             `last error: connection error: connect: refused; gave up`,
		`connection error: desc = "cut off`:                                                                            `connection error: desc = "cut off`,
		`name "n1": not found`:                                                                                         `name "n1": not found`,
	} {
		if got := FromStatus(status.Error(codes.Unavailable, text)); got.Error() != want ||
			!errors.Is(got, roost.Unavailable) {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
