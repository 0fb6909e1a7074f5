package negotiator

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestRecentStartsSample checks a sample of very many starts. It must have the right
// number of tasks and roughly the right sizes, and drop old ones.
func TestRecentStartsSample(t *testing.T) {
	var s recentStarts
	now := time.Unix(1000, 0)
	units := func() (small, large int) {
		for _, one := range s.list {
			if one.Resources.CPU == 1000 {
				small += one.Units
			} else {
				large += one.Units
			}
		}
		return small, large
	}
	const n = 50_000
	for i := range n {
		r := &match.Request{Class: &match.RequestClass{Resources: roost.Resources{CPU: 1000}}}
		if i%4 == 3 {
			r.Class.Resources.CPU = 8000
		}
		s.addStart(now, &match.Grant{Request: r, Machine: &match.Machine{Name: "a"}, Units: 2})
		now = now.Add(time.Millisecond)
	}
	small, large := units()
	if len(s.list) > maxStarts || small+large != 2*n {
		t.Fatalf("%d records of %d units, want at most %d of %d", len(s.list), small+large, maxStarts, 2*n)
	}
	if large < n/3 || large > 2*n/3 {
		t.Fatalf("%d of %d units are large, want about a quarter", large, 2*n)
	}
	s.dropOld(now.Add(startsMemory - 10*time.Second))
	small, large = units()
	if got, want := small+large, 2*10_000; got < want*8/10 || got > want*12/10 {
		t.Fatalf("%d units of the last ten seconds, want about %d", got, want)
	}
	s.dropOld(now.Add(time.Hour))
	if len(s.list) != 0 {
		t.Fatalf("%d records of an hour ago", len(s.list))
	}
}
