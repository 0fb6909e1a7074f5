package replica

import (
	"strings"
	"testing"
	"time"
)

// TestCompare checks that a replica with a different state is found if it can be
// compared. The leader's state counts as right.
func TestCompare(t *testing.T) {
	s := CellStatus{Members: []CellMember{
		{Name: "n1", DigestIndex: 7, Digest: []byte("b")}, {Name: "n2", DigestIndex: 7, Digest: []byte("a"),
			IsLeader: true}, {Name: "n3", DigestIndex: 7, Digest: []byte("a")},
		{Name: "n4", DigestIndex: 6, Digest: []byte("c")}, {Name: "n5"},
	}}
	s.compareDigests()
	for _, m := range s.Members {
		if wrong := strings.Contains(m.Problem, "differs from that of n2 after entry 7"); wrong != (m.Name == "n1") {
			t.Errorf("%s: %q", m.Name, m.Problem)
		}
	}
}

// TestClockProblem checks when a clock that was read between two instants is wrong.
func TestClockProblem(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		apart time.Duration
		want  string
	}{{0, ""}, {-4 * time.Second, ""}, {7 * time.Second, ""}, {-time.Minute, "behind by 1m"},
		{time.Hour, "ahead by 59m57s"}} {
		got := clockProblem(now.Add(tt.apart).UnixNano(), now, now.Add(3*time.Second))
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.apart, got, tt.want)
		}
	}
	if got := clockProblem(0, now, now); got != "" {
		t.Errorf("no clock: %q", got)
	}
}
