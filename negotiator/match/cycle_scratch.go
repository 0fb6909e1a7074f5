package match

import (
	"slices"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// cycleScratch retains memory from one cycle to the next. Where little changes between
// two cycles, allocating it again would cost more than the cycle itself. Only the memory
// outlives a cycle, never its content, and only as much as a cycle of usual size needs.
type cycleScratch struct {
	cycle           negotiationCycle
	log             []machineVersion
	preferHits      []classad.QueryHit
	rankLists       [][]float64
	candidateLists  [][]placementCandidate
	noMatches       []float64       // a run of noMatch values to copy from
	requestOrder    []*requestState // memory of negotiationCycle.requests
	turnRequests    []*requestState // requests that take turns, grouped by submitter
	queues          [][]*requestState
	claims          []fairshare.WaitingSubmitter
	fairShareQueue  fairshare.TurnQueue
	requestStates   cycleArena[requestState]
	submitterStates cycleArena[submitterState]
	shares          map[fairshare.Submitter]*submitterState
	timelines       []*machineTimeline // timelinesUsed of them are in use
	timelinesUsed   int
	unavailable     map[int]*machineTimeline
}

// Bounds on the retained memory: maxRetained lists of each kind, maxSpareLists elements
// of each list.
const (
	maxRetained   = 16
	maxSpareLists = 1024
)

// recycle takes the memory of a finished cycle back.
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

// trimLists returns the first maxRetained lists.
func trimLists[T any](lists [][]T) [][]T {
	if len(lists) > maxRetained {
		clear(lists[maxRetained:])
		lists = lists[:maxRetained]
	}
	return lists
}

// emptySlice returns the emptied memory of a list for the next cycle, or nil if it is
// large.
func emptySlice[T any](list []T) []T {
	if cap(list) > maxSpareLists {
		return nil
	}
	clear(list)
	return list[:0]
}

// cycleArena allocates objects that live until the end of a cycle.
type cycleArena[T any] struct {
	chunks [][]T
	used   int
}

// chunkSize is how many objects are allocated at a time.
const chunkSize = 32

// newItem returns memory for one object, all zeros.
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

// newRanks returns memory for n ranks, all noMatch.
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

// newCandidateList returns an empty list of candidates.
func (s *cycleScratch) newCandidateList() (list []placementCandidate) {
	if last := len(s.candidateLists) - 1; last >= 0 {
		list, s.candidateLists = s.candidateLists[last], s.candidateLists[:last]
	}
	return list
}

// newTimeline returns a timeline without reservations, in which the given resources
// become free.
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

// newSubmitterState stores the state of a submitter.
func (s *cycleScratch) newSubmitterState(a submitterState) *submitterState {
	to := s.submitterStates.newItem()
	*to = a
	return to
}

// requestOrder returns an empty list with room for n requests.
func requestOrder(list []*requestState, n int) []*requestState { return slices.Grow(list[:0], n) }
