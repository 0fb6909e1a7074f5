package schedd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func welcomePart(more bool, claims ...uint64) *wire.FromStartd {
	w := &wire.SessionWelcome{Node: "n1", More: more}
	for _, id := range claims {
		w.Claims = append(w.Claims, &wire.ClaimState{Claim: id})
	}
	return &wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: w}}
}

// TestReceiveWelcome: all parts of a welcome are one, as what it leaves out counts as gone.
func TestReceiveWelcome(t *testing.T) {
	tests := []struct {
		name  string
		parts []*wire.FromStartd
		want  int // claims
		err   error
	}{
		{"whole", []*wire.FromStartd{welcomePart(false, 1, 2)}, 2, nil},
		{"parts", []*wire.FromStartd{welcomePart(true, 1, 2), welcomePart(true, 3), welcomePart(false, 4)}, 4, nil},
		{"broken off", []*wire.FromStartd{welcomePart(true, 1)}, 0, io.EOF},
		{"something else first", []*wire.FromStartd{welcomePart(true, 1), {Of: &wire.FromStartd_Renewed{}}}, 0, roost.Invalid},
		{"without an end", []*wire.FromStartd{welcomePart(true)}, 0, roost.Exhausted},
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

// TestSessionEndsAreTold: a session that ends for another reason than that one of the two goes away is a warning, and told once.
func TestSessionEndsAreTold(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	var ends sessionEnds
	for range 3 {
		ends.tell(log, "n1", status.Error(codes.ResourceExhausted, "grpc: received message larger than max"))
	}
	for _, usual := range []error{nil, io.EOF, context.Canceled, status.Error(codes.Unavailable, "connection refused")} {
		ends.tell(log, "n1", usual)
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "larger than max") {
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
		if err := s.deliver("n1", m, send); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if sent != 1 {
		t.Errorf("%d of 3 messages were sent, and 1 can be", sent)
	}
}
