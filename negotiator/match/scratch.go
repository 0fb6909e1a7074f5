package match

import (
	"slices"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/forecast"
	"github.com/roost-batch/roost/negotiator/share"
)

// scratch keeps memory from one plan to the next: where little changes between two, to make it anew would cost more than to plan. Nothing in it outlives a plan but
// the memory itself, and of that no more than a plan of usual size needs.
type scratch struct {
	plan     plan
	log      []placed
	hits     []classad.Hit
	rank     [][]float64
	lists    [][]candidate
	none     []float64 // noMatch, again and again
	order    []*want   // plan.wants
	turns    []*want   // of those who take turns, one submitter's after the other's
	queues   [][]*want
	claims   []share.Claimant
	pie      share.Turns
	wants    arena[want]
	accounts arena[account]
	standing map[share.Submitter]*account
	futures  []*future // so many of them are in use:
	foreseen int
	kept     map[int]*future
}

// Bounds on what is kept: of lists of either kind, and of all else, as many as there are machines or requests in a plan that is made often.
const (
	maxKept  = 16
	maxSpare = 1024
)

// keep takes the memory of a plan back that nobody needs any more.
func (s *scratch) keep(p *plan) {
	s.log = p.log[:0]
	for _, w := range p.wants {
		p.release(w)
	}
	s.rank, s.lists = trimmed(s.rank), trimmed(s.lists)
	s.order, s.turns, s.queues = emptied(p.wants), emptied(s.turns), emptied(s.queues)
	if s.claims = emptied(s.claims); s.claims == nil {
		s.pie = share.Turns{}
	}
	s.wants.empty()
	s.accounts.empty()
	if s.standing = p.accounts; len(s.standing) > maxSpare {
		s.standing = nil
	}
	if s.kept = p.futures; s.foreseen > maxKept {
		s.futures, s.kept = nil, nil
	}
	s.foreseen = 0
	clear(s.standing)
	clear(s.kept)
	s.plan = plan{}
}

// trimmed are the first of some lists.
func trimmed[T any](lists [][]T) [][]T {
	if len(lists) > maxKept {
		clear(lists[maxKept:])
		lists = lists[:maxKept]
	}
	return lists
}

// emptied is the memory of a list that is needed no more.
func emptied[T any](list []T) []T {
	if cap(list) > maxSpare {
		return nil
	}
	clear(list)
	return list[:0]
}

// arena is memory for things that are gone when a plan is.
type arena[T any] struct {
	chunks [][]T
	used   int
}

// chunk is how many are made at a time.
const chunk = 32

// next is memory for one, all zeros.
func (a *arena[T]) next() *T {
	if a.used >= maxSpare {
		return new(T)
	}
	at, i := a.used/chunk, a.used%chunk
	if at == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, chunk))
	}
	a.used++
	return &a.chunks[at][i]
}

func (a *arena[T]) empty() {
	for i := 0; i < a.used; i += chunk {
		clear(a.chunks[i/chunk][:min(chunk, a.used-i)])
	}
	a.used = 0
}

// ranks is memory for so many ranks, all noMatch.
func (s *scratch) ranks(n int) (list []float64) {
	if last := len(s.rank) - 1; last >= 0 {
		list, s.rank = s.rank[last], s.rank[:last]
	}
	if cap(list) < n {
		list = make([]float64, n)
	}
	for len(s.none) < n {
		s.none = append(s.none, noMatch)
	}
	list = list[:n]
	copy(list, s.none)
	return list
}

// list is an empty list of candidates.
func (s *scratch) list() (list []candidate) {
	if last := len(s.lists) - 1; last >= 0 {
		list, s.lists = s.lists[last], s.lists[:last]
	}
	return list
}

// future is an empty future, in which so much falls free.
func (s *scratch) future(returns []forecast.Release) *future {
	if s.foreseen == len(s.futures) {
		s.futures = append(s.futures, &future{})
	}
	f := s.futures[s.foreseen]
	s.foreseen++
	f.Releases, f.Holds, f.holds = append(f.Releases[:0], returns...), f.Holds[:0], emptied(f.holds)
	return f
}

// account is an account of somebody.
func (s *scratch) account(a account) *account {
	to := s.accounts.next()
	*to = a
	return to
}

// byRequest is room for so many in order.
func byRequest(list []*want, n int) []*want { return slices.Grow(list[:0], n) }
