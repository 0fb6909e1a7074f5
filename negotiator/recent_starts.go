package negotiator

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/negotiator/match"
)

// recentStarts remembers what was granted in the last minutes, for those who ask when it
// is their turn. A new leader begins with nothing.
type recentStarts struct{ list []match.RecentStart }

const (
	startsMemory = 10 * time.Minute
	maxStarts    = 4096
)

// addStart notes a grant. Where there are too many, of each two that follow one another
// one stands for both: a rate is as good from a sample.
func (s *recentStarts) addStart(now time.Time, g *match.Grant) {
	if g.Units <= 0 {
		return
	}
	if len(s.list) >= maxStarts {
		s.dropOld(now)
	}
	if len(s.list) >= maxStarts {
		for i := range maxStarts / 2 {
			one := s.list[2*i+i%2]
			one.Units = s.list[2*i].Units + s.list[2*i+1].Units
			s.list[i] = one
		}
		s.list = s.list[:maxStarts/2]
	}
	s.list = append(s.list, match.RecentStart{At: now.Unix(), Machine: g.Machine.Name,
		Resources: g.Request.Class.Resources, Units: g.Units})
}

// dropOld forgets what was too long ago.
func (s *recentStarts) dropOld(now time.Time) {
	old := now.Add(-startsMemory).Unix()
	first := slices.IndexFunc(s.list, func(one match.RecentStart) bool { return one.At >= old })
	if first < 0 {
		first = len(s.list)
	}
	s.list = slices.Delete(s.list, 0, first)
}
