package negotiation

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestStartErrors compares starts with what was expected of them.
func TestStartErrors(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	explained := func(in time.Duration, certainty string) *wire.Explanation {
		return &wire.Explanation{Start: now.Add(in).Unix(), Certainty: certainty}
	}
	var s startErrors
	for i, e := range []*wire.Explanation{
		0: explained(time.Hour, "walltime"), 1: explained(time.Hour, "walltime"), 2: explained(time.Minute, "rate"),
		3: explained(0, "walltime"), 4: explained(time.Hour, "unknown"), 5: {Summary: "nobody knows"}, 6: nil,
		7: explained(time.Hour, "prediction"),
	} {
		s.note(queue.RequestID(i), e, now)
	}
	s.note(0, explained(time.Minute, "rate"), now.Add(time.Minute)) // the first estimate counts
	s.forget(7)
	for _, c := range []struct {
		id        queue.RequestID
		at        time.Duration
		certainty string
		off       time.Duration
	}{{0, time.Hour - 3*time.Second, "walltime", 3 * time.Second}, {0, time.Hour, "", 0},
		{1, time.Hour + time.Hour, "walltime", time.Hour}, {2, time.Minute, "rate", 0}, {3, 0, "", 0}, {4, 0, "", 0},
		{5, 0, "", 0}, {6, 0, "", 0}, {7, time.Hour, "", 0}} {
		certainty, off, ok := s.compare(c.id, now.Add(c.at))
		if certainty != c.certainty || off != c.off || ok != (c.certainty != "") {
			t.Errorf("request %d: got %q, %v, %t", c.id, certainty, off, ok)
		}
	}
	if w := s.sums["walltime"]; w.Late != 1 || w.Starts[2] != 1 || w.Starts[12] != 1 {
		t.Errorf("by walltime: %+v", w)
	}
	if r := s.sums["rate"]; r.Late != 0 || r.Starts[0] != 1 || len(s.sums) != 2 || len(s.expected) != 0 {
		t.Errorf("got %+v", s)
	}
	for i := range maxForecasts + 10 {
		s.note(queue.RequestID(i), explained(time.Hour, "rate"), now)
	}
	if len(s.expected) != maxForecasts {
		t.Errorf("%d estimates are remembered", len(s.expected))
	}
}

// TestErrorBuckets holds the bounds of the classes of errors.
func TestErrorBuckets(t *testing.T) {
	for off, want := range map[time.Duration]int{0: 0, time.Millisecond: 0, time.Second: 0, time.Second + 1: 1,
		2 * time.Second: 1, 3 * time.Second: 2, 4 * time.Second: 2, 5 * time.Second: 3, 1024 * time.Second: 10,
		1025 * time.Second: 11, 1 << 62: errorBuckets - 1} {
		if got := errorBucket(off); got != want {
			t.Error(fmt.Sprint(off, " is in bucket ", got, ", want ", want))
		}
	}
}
