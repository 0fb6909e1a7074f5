package store

import (
	"context"

	"github.com/roost-batch/roost/internal/accounting"
)

const (
	deleteUsage   = `DELETE FROM usage WHERE hour < $1`
	deleteActions = `DELETE FROM action WHERE at < $1`
)

// Purge removes windows of usage and actions on jobs from before a time. A time of 0
// removes nothing. Months of jobs are removed by DropMonth.
func (s *Store) Purge(ctx context.Context, usageBefore, actionsBefore accounting.Millis) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.engine.purge(ctx, deleteUsage, usageBefore); err != nil {
		return err
	}
	return s.engine.purge(ctx, deleteActions, actionsBefore)
}
