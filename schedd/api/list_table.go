package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// runTable answers a query that is printed as it comes, from a table. Of arrays whose
// tasks are wanted, and of what the history has, it asks as others do.
func (l *listQuery) runTable() error {
	l.attributes = func(name string) bool {
		return slices.ContainsFunc(l.req.GetAttributes(), func(a string) bool { return strings.EqualFold(a, name) })
	}
	if len(l.req.GetAttributes()) == 0 {
		l.attributes = func(string) bool { return true }
	}
	words := l.req.GetSelection().GetSelectors()
	t, err := l.tableOfWords(words)
	if t == nil && err == nil {
		t, err = l.freshTable(l.ctx)
	}
	if err != nil {
		return err
	}
	if len(words) == 0 {
		if err := l.sendTable(t); err != nil {
			return err
		}
		return l.sendPendingRows()
	}
	for _, word := range words {
		if err := l.sendWordRows(t, word); err != nil {
			if l.ctx.Err() != nil {
				return err
			}
			if err := l.sendPendingRows(); err != nil { // each in its place
				return err
			}
			if err := l.to(peers.ListRow{Status: &wire.JobStatus{Refused: peers.SelectionError(word,
				err)}}); err != nil {
				return err
			}
		}
	}
	return l.sendPendingRows()
}

// Bounds of what is answered without a table of all jobs.
const (
	maxDirectQueries = 32
	maxDirectWords   = 200
)

// tableOfWords returns a table of the jobs that words name. It is for those who ask first
// after a start, who need not wait for the rows of all other jobs. It returns nil where
// the table of all jobs is there, or soon wanted.
func (l *listQuery) tableOfWords(words []string) (*table.Table, error) {
	if len(words) == 0 || len(words) > maxDirectWords || l.jobTable.current.Load() != nil ||
		l.jobTable.directQueries.Add(1) > maxDirectQueries {
		return nil, nil
	}
	rows := map[uint64]*table.JobRow{}
	err := l.callLoopDurable(l.ctx, func(time.Time) {
		for _, word := range words {
			if id, err := parseListedJob(word, l.node.Name); err == nil {
				id.Seq = queue.JobOfNumber(l.queue, id.Seq)
				if row, _ := l.makeTableRow(id.Seq); row != nil {
					rows[id.Seq] = row
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return (&table.Table{}).WithRows(rows), nil
}

// parseListedJob reads a word that names one job.
func parseListedJob(word, host string) (roost.JobID, error) {
	return roost.ParseJobID(strings.Replace(word, "[]", "", 1), host)
}

// sendTable sends the rows of all jobs in the order of their places. That is the oldest
// first, unless somebody has changed the order. The rows are those of the table and, on
// request, those of the history between them.
func (l *listQuery) sendTable(t *table.Table) (err error) {
	past := &pastRows{listQuery: l, queued: t}
	if since := l.req.GetSince(); since != 0 && l.req.GetHistory() {
		if past.chosen, err = l.history.Recent(time.Unix(0, since)); err != nil {
			return err
		}
		past.onlyChosen = true
	}
	t.Each(0, func(r *table.JobRow) bool {
		if l.req.GetHistory() {
			if err = past.sendBefore(r.OrderNumber()); err != nil {
				return false
			}
		} else if r.IsFinal {
			return true
		}
		if l.admitsRow(r) {
			err = l.sendTableRow(r)
		}
		return err == nil
	})
	if err == nil && l.req.GetHistory() {
		err = past.sendBefore(0)
	}
	return err
}

func (l *listQuery) admitsRow(r *table.JobRow) bool {
	owners := l.req.GetOwners()
	return (len(owners) == 0 || slices.Contains(owners, r.Owner)) && (!l.req.GetEnded() || r.IsFinal)
}

// historyFilter is what the history is asked for.
func (l *listQuery) historyFilter() history.RowFilter {
	return history.RowFilter{Owners: l.req.GetOwners(), Ads: l.req.GetAds(), MakeRow: l.HistoryRow}
}

// sendTableRow sends a row. With ads it is held back until there are some, so that the
// loop is asked once for all of them what only it knows.
func (l *listQuery) sendTableRow(r *table.JobRow) error {
	if !l.req.GetAds() {
		return l.to(peers.ListRow{SubmittedAt: r.OrderedAt(), Text: l.jobTable.rowText(r)})
	}
	if l.pendingRows = append(l.pendingRows, r); len(l.pendingRows) < maxPendingRows {
		return nil
	}
	return l.sendPendingRows()
}

// maxPendingRows is how many rows are held back at most.
const maxPendingRows = 200

// sendPendingRows sends the rows that were collected, with their ads. It adds what is
// found by looking at other jobs or at all tasks of a job.
func (l *listQuery) sendPendingRows() error {
	rows := l.pendingRows
	l.pendingRows = nil
	more := make([]wire.JobStatus, len(rows))
	if slices.ContainsFunc(rows, func(r *table.JobRow) bool { return !r.IsFinal }) {
		if err := l.loop.CallLoop(l.ctx, func(time.Time) {
			for i, r := range rows {
				if more[i].Depends = l.queue.DependencyText(r.Seq); r.IsArray && !r.IsFinal {
					more[i].Remaining = l.queue.WaitingIndexes(r.Seq)
				}
			}
		}); err != nil {
			return err
		}
	}
	for i, r := range rows {
		m := &more[i]
		m.Discreet = !mayReadAd(l.user, &queue.JobStatus{UID: r.UID, Owner: r.Owner})
		m.Ad, _ = classad.ProjectAd(r.Ad.String(), func(name string) bool {
			return l.attributes(name) && !(m.Discreet && slices.ContainsFunc(privateAttributes, func(p string) bool {
				return strings.EqualFold(p, name)
			}))
		})
		behind, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		text := l.jobTable.rowText(r)
		if err := l.to(peers.ListRow{SubmittedAt: r.OrderedAt(),
			Text: append(text[:len(text):len(text)], behind...)}); err != nil {
			return err
		}
	}
	return nil
}

// sendWordRows sends the rows of what one word names. One job comes from the table or
// from the history. Everything else is answered like other queries.
func (l *listQuery) sendWordRows(t *table.Table, word string) error {
	id, err := parseListedJob(word, l.node.Name)
	if err != nil || l.req.GetTasks() || id.Host != l.node.Name {
		return l.sendSingle(word)
	}
	r := t.Get(id.Seq)
	if r == nil { // or a task has that number
		if err := l.loop.CallLoop(l.ctx, func(time.Time) { id.Seq = queue.JobOfNumber(l.queue, id.Seq) }); err != nil {
			return err
		}
		r = t.Get(id.Seq)
	}
	if r != nil {
		if r.IsFinal && !l.req.GetHistory() {
			return fmt.Errorf("%v: %w", id, roost.Finished)
		}
		return l.sendTableRow(r)
	}
	if !l.req.GetHistory() {
		return l.mustBeQueued(queue.TaskSelector{Job: id})
	}
	if r, err = l.history.Row(id.Seq, l.historyFilter()); err != nil {
		return l.mustBeQueued(queue.TaskSelector{Job: id})
	}
	return l.sendTableRow(r)
}

// sendSingle tells of a word by the means of other queries.
func (l *listQuery) sendSingle(word string) error {
	if err := l.sendPendingRows(); err != nil {
		return err
	}
	req := proto.CloneOf(l.req)
	req.Table, req.Selection = false, &wire.Selection{Selectors: []string{word}}
	req.Tasks = req.Tasks || strings.Contains(word, "[") && !strings.Contains(word, "[]")
	found := false
	one := &listQuery{Service: l.Service, ctx: l.ctx, req: req, user: l.user, limit: -1,
		to: func(t peers.ListRow) error {
			found = true
			return l.to(t)
		}}
	err := one.runQuery()
	if err == nil && !found {
		return roost.NotFound
	}
	return err
}

// pastRows goes through the jobs of the history in the order of their numbers. It never
// keeps more than a few, and keeps nothing open while they are sent, so that somebody who
// reads slowly holds up nobody.
type pastRows struct {
	*listQuery
	nextSeq    uint64 // the number from which on nothing was told yet
	onlyChosen bool   // only the chosen ones
	chosen     []uint64
	done       bool
	rows       []*table.JobRow
	queued     *table.Table
}

// historyTurn is how many jobs of the history are read at a time.
const historyTurn = 256

// sendBefore sends the ended jobs before the number seq, except those in the table. With
// seq 0 it sends all that are left.
func (p *pastRows) sendBefore(seq uint64) error {
	for {
		for len(p.rows) > 0 && (seq == 0 || p.rows[0].Seq < seq) {
			r := p.rows[0]
			p.rows = p.rows[1:]
			if p.queued.Get(r.Seq) == nil && p.admitsRow(r) {
				if err := p.sendTableRow(r); err != nil {
					return err
				}
			}
		}
		if len(p.rows) > 0 || p.done {
			return nil
		}
		if err := p.readMore(); err != nil {
			return err
		}
	}
}

// readMore reads more of them.
func (p *pastRows) readMore() (err error) {
	if p.onlyChosen {
		n := min(historyTurn, len(p.chosen))
		p.rows, err = p.history.RowsOf(p.chosen[:n], p.historyFilter())
		p.chosen = p.chosen[n:]
		p.done = len(p.chosen) == 0
		return err
	}
	if p.rows, err = p.history.Rows(p.nextSeq, historyTurn, p.historyFilter()); err != nil {
		return err
	}
	if p.done = len(p.rows) < historyTurn; len(p.rows) > 0 {
		p.nextSeq = p.rows[len(p.rows)-1].Seq + 1
	}
	return nil
}
