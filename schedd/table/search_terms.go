package table

import "github.com/roost-batch/roost"

// SearchTerms are what lists of jobs are filtered by, beside the owner. Naively a filter
// would decode the text of each row: of 100,000 jobs that takes 0.3 s.
type SearchTerms struct {
	LowerName string // its name in lower case
	Queue     string
	Band      string
	States    StateSet // of its tasks
}

// StateSet is a set of states of tasks. Tasks that have failed are a state of their own.
type StateSet uint16

// Add adds a state.
func (s *StateSet) Add(state roost.TaskState) { *s |= 1 << state }

// AddFailed adds that of tasks that have failed.
func (s *StateSet) AddFailed() { *s |= 1 << (roost.Removed + 1) }

// Overlaps reports whether two sets have a state in common.
func (s StateSet) Overlaps(other StateSet) bool { return s&other != 0 }
