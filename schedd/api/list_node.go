package api

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// runNode answers a query for the tasks on one node from the claims there. Naively it
// would look at each running task of the queue, of which there may be 100,000.
func (l *listQuery) runNode() (err error) {
	sel := l.req.GetSelection()
	if !l.req.GetTasks() || l.req.GetHistory() || l.req.GetAds() || l.req.GetTable() ||
		l.req.GetNewest() || len(sel.GetSelectors()) > 0 ||
		sel.GetConstraint() != "" || sel.GetMine() {
		return fmt.Errorf("list of the tasks of node %.80q: %w: it has no selectors, constraints, history or ads",
			l.req.GetNode(), roost.Invalid)
	}
	if l.states, err = newFilter(sel, l.user); err != nil {
		return err
	}
	var rows []*wire.JobStatus
	if err := l.callLoopDurable(l.ctx, func(time.Time) {
		for _, a := range l.dispatch.AttemptsOn(l.req.GetNode()) {
			one, ok := l.queue.TaskStatus(a.Task)
			if ok && one.Task != nil && one.Task.Node == l.req.GetNode() &&
				(len(l.states.States) == 0 || slices.Contains(l.states.States, one.Task.State)) {
				rows = append(rows, l.finishRow(l.singleTaskRow(&one, ""), &one, true))
			}
		}
	}); err != nil {
		return err
	}
	return l.sendAll(rows)
}
