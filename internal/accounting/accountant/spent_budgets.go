package accountant

import (
	"log/slog"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/wire"
)

// spentBudgets is the hard budgets that are spent, for all schedds. They refuse jobs of
// their payers by it.
type spentBudgets struct {
	mu     sync.Mutex
	last   *wire.SpentBudgets // never changed: another one takes its place; nil: not known yet
	warned map[int64]bool     // ids of budgets whose warning is in the log
}

// maxSpentBudgets bounds how many are told.
const maxSpentBudgets = 10_000

// load returns the last list.
func (s *spentBudgets) load() *wire.SpentBudgets {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// update makes the list anew from what the store says.
func (s *spentBudgets) update(r accounting.Reporter, now accounting.Millis, log *slog.Logger) error {
	all, err := r.Budgets(now)
	if err != nil {
		return err
	}
	next := &wire.SpentBudgets{}
	warned := map[int64]bool{}
	for i := range all {
		b := &all[i]
		if b.Warns() {
			warned[b.ID] = true
		}
		if b.Refuses() && len(next.Spent) < maxSpentBudgets {
			next.Spent = append(next.Spent, &wire.SpentBudget{Project: b.Payer.Project, Group: b.Payer.Group,
				Owner: b.Payer.Owner, Amount: int64(b.Amount), Spent: int64(b.Spent), Until: int64(b.To.End())})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		if b := &all[i]; warned[b.ID] && !s.warned[b.ID] {
			log.Warn("a budget is nearly spent, or is", "project", b.Payer.Project, "group", b.Payer.Group,
				"owner", b.Payer.Owner, "spent", b.Spent, "amount", b.Amount, "hard", b.Hard)
		}
	}
	s.warned = warned
	if s.last == nil || !proto.Equal(s.last, next) {
		s.last = next
	}
	return nil
}
