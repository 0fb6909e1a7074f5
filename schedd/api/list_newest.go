package api

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/table"
)

// runNewest answers a query for the newest jobs from the table of the queue and the rows
// of the history. It costs as much as what it sends, however long the queue is. A job
// stays at its place, so a list that goes on behind a place shows each job once while
// jobs come, change and end.
func (l *listQuery) runNewest() (err error) {
	if len(l.req.GetSelection().GetSelectors()) > 0 || l.req.GetTasks() || l.req.GetAds() ||
		l.req.GetSelection().GetConstraint() != "" {
		return fmt.Errorf("list of the newest jobs: %w: it has no selectors, constraints, tasks or ads", roost.Invalid)
	}
	if l.states, err = newFilter(l.req.GetSelection(), l.user); err != nil {
		return err
	}
	l.conditions = newRowConditions(l.req, l.states)
	t, err := l.freshTable(l.ctx)
	if err != nil {
		return err
	}
	before := l.req.GetBefore()
	if before == 0 {
		before = math.MaxUint64
	}
	past := &newestPast{listQuery: l, queued: t, before: before, done: !l.req.GetHistory(), filter: l.historyFilter()}
	if l.req.GetSelection().GetMine() {
		past.filter.Owners = []string{l.user.User}
	}
	t.EachBefore(before, func(r *table.JobRow) bool {
		if err = past.sendFrom(r.OrderNumber()); err == nil && (l.req.GetHistory() || !r.IsFinal) {
			err = l.sendNewest(r)
		}
		return err == nil && l.limit != 0
	})
	if err == nil && l.limit != 0 {
		err = past.sendFrom(0)
	}
	return err
}

// sendNewest sends a row with its place, if the query's conditions admit it.
func (l *listQuery) sendNewest(r *table.JobRow) error {
	if l.limit == 0 || !l.admitsRow(r) || l.req.GetSelection().GetMine() && r.Owner != l.user.User {
		return nil
	}
	if ok, err := l.conditions.admits(r); !ok || err != nil {
		return err
	}
	text := l.jobTable.rowText(r)
	place, err := proto.Marshal(&wire.JobStatus{Place: r.OrderNumber()})
	if err != nil {
		return err
	}
	l.limit--
	return l.to(peers.ListRow{SubmittedAt: r.OrderedAt(), Text: append(text[:len(text):len(text)], place...)})
}

// newestPast goes through the jobs of the history, the newest first. It never holds more
// than a few, and nothing is open while they are sent.
type newestPast struct {
	*listQuery
	queued *table.Table
	filter history.RowFilter
	before uint64 // all jobs from this number on were looked at
	rows   []*table.JobRow
	done   bool
}

// sendFrom sends the ended jobs with numbers from seq on, except those in the table.
func (p *newestPast) sendFrom(seq uint64) (err error) {
	for {
		for len(p.rows) > 0 && p.rows[0].Seq >= seq {
			r := p.rows[0]
			p.rows = p.rows[1:]
			if r.OrderedAt() < p.req.GetSince() || p.limit == 0 {
				p.rows, p.done = nil, true
				return nil
			}
			if p.queued.Get(r.Seq) == nil {
				r.OrderSeq = r.Seq // jobs of the history have their own places
				if err := p.sendNewest(r); err != nil {
					return err
				}
			}
		}
		if len(p.rows) > 0 || p.done {
			return nil
		}
		if p.rows, err = p.history.RowsBefore(p.before, historyTurn, p.filter); err != nil {
			return err
		}
		if p.done = len(p.rows) < historyTurn; len(p.rows) > 0 {
			p.before = p.rows[len(p.rows)-1].Seq
		}
	}
}
