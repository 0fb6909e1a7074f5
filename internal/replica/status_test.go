package replica

import (
	"strings"
	"testing"
	"time"
)

// TestCompare holds that a replica whose state differs is found where it can be compared, and that the leader is believed.
func TestCompare(t *testing.T) {
	s := Status{Members: []Member{
		{Name: "n1", DigestAt: 7, Digest: []byte("b")}, {Name: "n2", DigestAt: 7, Digest: []byte("a"), Leads: true}, {Name: "n3", DigestAt: 7, Digest: []byte("a")},
		{Name: "n4", DigestAt: 6, Digest: []byte("c")}, {Name: "n5"},
	}}
	s.compare()
	for _, m := range s.Members {
		if wrong := strings.Contains(m.Trouble, "another than that of n2 after entry 7"); wrong != (m.Name == "n1") {
			t.Errorf("%s: %q", m.Name, m.Trouble)
		}
	}
}

// TestClockTrouble holds that a clock which was read between two moments is blamed for what these cannot explain.
func TestClockTrouble(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		apart time.Duration
		want  string
	}{{0, ""}, {-4 * time.Second, ""}, {7 * time.Second, ""}, {-time.Minute, "behind by 1m"}, {time.Hour, "ahead by 59m57s"}} {
		got := clockTrouble(now.Add(tt.apart).UnixNano(), now, now.Add(3*time.Second))
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.apart, got, tt.want)
		}
	}
	if got := clockTrouble(0, now, now); got != "" {
		t.Errorf("no clock: %q", got)
	}
}
