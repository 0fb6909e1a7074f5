package rpc

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestRefusalsLoggedOnce(t *testing.T) {
	var r logLimiter
	now := time.Unix(1000, 0)
	tests := []struct {
		after      time.Duration
		kind, peer string
		want       []any // nil: not logged
	}{
		{0, "a", "n1", []any{"peer", "n1"}},
		{time.Second, "a", "n1", nil},
		{0, "b", "n1", []any{"peer", "n1"}},
		{0, "a", "n2", []any{"peer", "n2"}},
		{time.Second, "a", "n1", nil},
		{time.Minute, "a", "n1", []any{"peer", "n1", "times_before", 2}},
		{2 * time.Minute, "a", "n1", []any{"peer", "n1"}},
		{-time.Hour, "a", "n1", []any{"peer", "n1"}}, // a clock that was set back suppresses nothing
	}
	for i, tt := range tests {
		now = now.Add(tt.after)
		if got := r.recordDue(now, tt.kind, tt.peer, nil); !slices.Equal(got, tt.want) ||
			(got == nil) != (tt.want == nil) {
			t.Errorf("step %d: got %v, want %v", i, got, tt.want)
		}
	}
}

// TestLogRateLimited refuses a hundred thousand addresses in an hour.
func TestLogRateLimited(t *testing.T) {
	var r logLimiter
	now, lines := time.Unix(1000, 0), 0
	const refusals = 100_000
	for i := range refusals {
		now = now.Add(time.Hour / refusals)
		if r.recordDue(now, "a", fmt.Sprint(i), nil) != nil {
			lines++
		}
		if len(r.last) > maxRemembered {
			t.Fatalf("%d are remembered", len(r.last))
		}
	}
	if most := maxLogBurst + logRate*3600; lines > most || lines < most*9/10 {
		t.Errorf("%d lines, want nearly %d", lines, most)
	}
	if r.omitted == 0 {
		t.Errorf("nothing is said of those that were left out")
	}
}
