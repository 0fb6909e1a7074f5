package negotiator

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/negotiator/match"
)

// recentStarts holds the grants of the last minutes, for start estimates. A new leader
// begins without any.
type recentStarts struct{ list []match.RecentStart }

const (
	startsMemory = 10 * time.Minute
	maxStarts    = 4096
)

// addStart adds a grant. If there are too many, every second one is dropped and its tasks
// added to its neighbour: a sample is enough for a rate.
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

// dropOld drops old grants.
func (s *recentStarts) dropOld(now time.Time) {
	old := now.Add(-startsMemory).Unix()
	first := slices.IndexFunc(s.list, func(one match.RecentStart) bool { return one.At >= old })
	if first < 0 {
		first = len(s.list)
	}
	s.list = slices.Delete(s.list, 0, first)
}
