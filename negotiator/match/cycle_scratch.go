package match

import (
	"slices"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// cycleScratch keeps memory from one plan to the next: where little changes between two,
// to make it anew would cost more than to plan. Nothing in it outlives a plan but the
// memory itself, and of that no more than a plan of usual size needs.
type cycleScratch struct {
	cycle           negotiationCycle
	log             []machineVersion
	preferHits      []classad.QueryHit
	rankLists       [][]float64
	candidateLists  [][]placementCandidate
	noMatches       []float64       // noMatch, again and again
	requestOrder    []*requestState // plan.requests
	turnRequests    []*requestState // of those who take turns, one submitter's after the other's
	queues          [][]*requestState
	claims          []fairshare.WaitingSubmitter
	fairShareQueue  fairshare.TurnQueue
	requestStates   cycleArena[requestState]
	submitterStates cycleArena[submitterState]
	shares          map[fairshare.Submitter]*submitterState
	timelines       []*machineTimeline // so many of them are in use:
	timelinesUsed   int
	unavailable     map[int]*machineTimeline
}

// Bounds on what is kept: of lists of either kind, and of all else, as many as there are
// machines or requests in a plan that is made often.
const (
	maxRetained   = 16
	maxSpareLists = 1024
)

// recycle takes the memory of a plan back that nobody needs any more.
func (s *cycleScratch) recycle(p *negotiationCycle) {
	s.log = p.placedLog[:0]
	for _, w := range p.requests {
		p.releaseMemory(w)
	}
	s.rankLists, s.candidateLists = trimLists(s.rankLists), trimLists(s.candidateLists)
	s.requestOrder, s.turnRequests, s.queues = emptySlice(p.requests), emptySlice(s.turnRequests), emptySlice(s.queues)
	if s.claims = emptySlice(s.claims); s.claims == nil {
		s.fairShareQueue = fairshare.TurnQueue{}
	}
	s.requestStates.reset()
	s.submitterStates.reset()
	if s.shares = p.submitters; len(s.shares) > maxSpareLists {
		s.shares = nil
	}
	if s.unavailable = p.timelines; s.timelinesUsed > maxRetained {
		s.timelines, s.unavailable = nil, nil
	}
	s.timelinesUsed = 0
	clear(s.shares)
	clear(s.unavailable)
	s.cycle = negotiationCycle{}
}

// trimLists are the first of some lists.
func trimLists[T any](lists [][]T) [][]T {
	if len(lists) > maxRetained {
		clear(lists[maxRetained:])
		lists = lists[:maxRetained]
	}
	return lists
}

// emptySlice is the memory of a list that is needed no more.
func emptySlice[T any](list []T) []T {
	if cap(list) > maxSpareLists {
		return nil
	}
	clear(list)
	return list[:0]
}

// cycleArena is memory for things that are gone when a plan is.
type cycleArena[T any] struct {
	chunks [][]T
	used   int
}

// chunkSize is how many are made at a time.
const chunkSize = 32

// newItem is memory for one, all zeros.
func (a *cycleArena[T]) newItem() *T {
	if a.used >= maxSpareLists {
		return new(T)
	}
	at, i := a.used/chunkSize, a.used%chunkSize
	if at == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, chunkSize))
	}
	a.used++
	return &a.chunks[at][i]
}

func (a *cycleArena[T]) reset() {
	for i := 0; i < a.used; i += chunkSize {
		clear(a.chunks[i/chunkSize][:min(chunkSize, a.used-i)])
	}
	a.used = 0
}

// newRanks is memory for so many ranks, all noMatch.
func (s *cycleScratch) newRanks(n int) (list []float64) {
	if last := len(s.rankLists) - 1; last >= 0 {
		list, s.rankLists = s.rankLists[last], s.rankLists[:last]
	}
	if cap(list) < n {
		list = make([]float64, n)
	}
	for len(s.noMatches) < n {
		s.noMatches = append(s.noMatches, noMatch)
	}
	list = list[:n]
	copy(list, s.noMatches)
	return list
}

// newCandidateList is an empty list of candidates.
func (s *cycleScratch) newCandidateList() (list []placementCandidate) {
	if last := len(s.candidateLists) - 1; last >= 0 {
		list, s.candidateLists = s.candidateLists[last], s.candidateLists[:last]
	}
	return list
}

// newTimeline is an empty future, in which so much falls free.
func (s *cycleScratch) newTimeline(returns []timeline.CapacityRelease) *machineTimeline {
	if s.timelinesUsed == len(s.timelines) {
		s.timelines = append(s.timelines, &machineTimeline{})
	}
	f := s.timelines[s.timelinesUsed]
	s.timelinesUsed++
	f.Releases, f.Reservations, f.holders = append(f.Releases[:0], returns...), f.Reservations[:0],
		emptySlice(f.holders)
	return f
}

// newSubmitterState is an account of somebody.
func (s *cycleScratch) newSubmitterState(a submitterState) *submitterState {
	to := s.submitterStates.newItem()
	*to = a
	return to
}

// requestOrder is room for so many in order.
func requestOrder(list []*requestState, n int) []*requestState { return slices.Grow(list[:0], n) }
