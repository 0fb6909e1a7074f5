package schedd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func welcomeMessage(more bool, claims ...uint64) *wire.FromStartd {
	w := &wire.SessionWelcome{Node: "n1", More: more}
	for _, id := range claims {
		w.Claims = append(w.Claims, &wire.ClaimState{Claim: id})
	}
	return &wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: w}}
}

// TestReceiveWelcome: all parts of a welcome are one, as what it leaves out counts as
// gone.
func TestReceiveWelcome(t *testing.T) {
	tests := []struct {
		name  string
		parts []*wire.FromStartd
		want  int // claims
		err   error
	}{
		{"whole", []*wire.FromStartd{welcomeMessage(false, 1, 2)}, 2, nil},
		{"parts", []*wire.FromStartd{welcomeMessage(true, 1, 2), welcomeMessage(true, 3), welcomeMessage(false, 4)},
			4, nil},
		{"broken off", []*wire.FromStartd{welcomeMessage(true, 1)}, 0, io.EOF},
		{"something else first", []*wire.FromStartd{welcomeMessage(true, 1), {Of: &wire.FromStartd_Renewed{}}},
			0, roost.Invalid},
		{"without an end", []*wire.FromStartd{welcomeMessage(true)}, 0, roost.Exhausted},
	}
	for _, tt := range tests {
		got, err := receiveWelcome("n1", func() (*wire.FromStartd, error) {
			if len(tt.parts) == 0 {
				return nil, io.EOF
			}
			m := tt.parts[0]
			tt.parts = tt.parts[1:]
			return m, nil
		})
		if len(got.GetClaims()) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d claims, %v", tt.name, len(got.GetClaims()), err)
		}
	}
}

// TestWelcomeIsBounded: a node does not fill the memory of the schedd with its welcome.
func TestWelcomeIsBounded(t *testing.T) {
	long := welcomeMessage(true, 1)
	long.GetWelcome().GetClaims()[0].Suspended = strings.Repeat("x", 4<<20)
	for name, part := range map[string]*wire.FromStartd{"long": long,
		"many": welcomeMessage(true, make([]uint64, 4096)...)} {
		parts := 0
		_, err := receiveWelcome("n1", func() (*wire.FromStartd, error) { parts++; return proto.CloneOf(part), nil })
		if !errors.Is(err, roost.Exhausted) || parts > 17 {
			t.Errorf("%s: after %d parts: %v", name, parts, err)
		}
	}
}

// TestNewsOfANodeIsBounded checks that a node's messages beyond what the loop accepts
// wait at the node. They continue when the loop has processed the earlier ones.
func TestNewsOfANodeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Schedd{inbox: make(chan any, inboxSize), daemonContext: t.Context(), peers: map[string]*nodeConn{}}
		const long = 1 << 20
		event := &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{Stdout: make([]byte, long)}}}
		stated, now := 0, newSession()
		ctx, cancel := context.WithCancel(t.Context())
		go s.receiveFromStartd(ctx, "n1", now, func() (*wire.FromStartd, error) { stated++; return event, ctx.Err() })
		synctest.Wait()
		if len(s.inbox) == 0 || len(s.inbox)*long > sessionBytes || stated > len(s.inbox)+1 {
			t.Errorf("%d messages wait, and %d were read", len(s.inbox), stated)
		}
		for range 100 {
			s.handle(<-s.inbox, time.Now())
			synctest.Wait()
		}
		if len(s.inbox) == 0 || len(s.inbox)*long > sessionBytes {
			t.Errorf("%d messages wait", len(s.inbox))
		}
		cancel()
	})
}

// TestNodeThatTakesNothing: the session with a node that does not read ends, and what was
// meant for it goes.
func TestNodeThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		began := time.Now()
		send := sendInTime(end, func(*wire.ToStartd) error { <-ctx.Done(); return ctx.Err() })
		if err := send(&wire.ToStartd{}); err == nil || time.Since(began) != sendTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, ok := errors.AsType[sendTimeoutError](context.Cause(ctx)); !ok {
			t.Errorf("the session has ended with %v", context.Cause(ctx))
		}
	})
}

// TestSessionEndsLogged checks that an unusual end of a session is logged once, as a
// warning. The usual end is that one of the two sides goes away.
func TestSessionEndsLogged(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	var ends sessionEndLog
	for range 3 {
		ends.logEnd(log, "n1", status.Error(codes.ResourceExhausted, "grpc: received message larger than max"))
	}
	for _, usual := range []error{nil, io.EOF, context.Canceled,
		status.Error(codes.Unavailable, "connection refused")} {
		ends.logEnd(log, "n1", usual)
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") ||
		!strings.Contains(got, "larger than max") {
		t.Errorf("got %s", got)
	}
}

// TestUndeliverable: a message that cannot be sent does not take the session with it.
func TestUndeliverable(t *testing.T) {
	s := &Schedd{log: slog.New(slog.DiscardHandler)}
	sent := 0
	send := func(*wire.ToStartd) error { sent++; return nil }
	for _, m := range []*wire.ToStartd{
		{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{Reason: "a\xff"}}},
		{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{Program: &wire.Program{Script: make([]byte, 33<<20)}}}},
		{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{Reason: "removed"}}},
	} {
		if err := sendToNode(s.log, "n1", m, send); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if sent != 1 {
		t.Errorf("%d of 3 messages were sent, and 1 can be", sent)
	}
}
