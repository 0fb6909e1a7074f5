package schedd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// line is a row on its way to who asked: as a message, or where it is at hand in its encoding.
type line struct {
	at     int64 // when the job was submitted, or the one whose place it has
	status *wire.JobStatus
	text   []byte
}

// message is the row as a message.
func (t line) message() (*wire.JobStatus, error) {
	if t.status != nil {
		return t.status, nil
	}
	m := &wire.JobStatus{}
	return m, proto.Unmarshal(t.text, m)
}

// encoded is the row in its encoding.
func (t line) encoded() ([]byte, error) {
	if t.status == nil {
		return t.text, nil
	}
	return proto.Marshal(t.status)
}

// runTable answers a query that is printed as it comes, from a table. Of arrays whose tasks are wanted, and of what the history has, it asks as others do.
func (l *listing) runTable() error {
	l.wanted = func(name string) bool {
		return slices.ContainsFunc(l.req.GetAttributes(), func(a string) bool { return strings.EqualFold(a, name) })
	}
	if len(l.req.GetAttributes()) == 0 {
		l.wanted = func(string) bool { return true }
	}
	t, err := l.fresh(l.ctx)
	if err != nil {
		return err
	}
	words := l.req.GetSelection().GetSelectors()
	if len(words) == 0 {
		if err := l.tellTable(t); err != nil {
			return err
		}
		return l.sendHeld()
	}
	for _, word := range words {
		if err := l.tellWord(t, word); err != nil {
			if l.ctx.Err() != nil {
				return err
			}
			if err := l.sendHeld(); err != nil { // each in its place
				return err
			}
			if err := l.to(line{status: &wire.JobStatus{Refused: refusedWord(word, err)}}); err != nil {
				return err
			}
		}
	}
	return l.sendHeld()
}

// refusedWord says why a word stands for nothing.
func refusedWord(word string, err error) *wire.Refused {
	return &wire.Refused{Selector: word, Kind: uint32(rpc.KindOf(err)), Text: strings.ToValidUTF8(err.Error(), "\ufffd")}
}

// tellTable tells of all jobs in the order of their places, so the oldest first unless somebody has changed that: those of the table, and on demand those of the past between them.
func (l *listing) tellTable(t *table.Table) (err error) {
	past := &pastRows{listing: l, queued: t}
	if since := l.req.GetSince(); since != 0 && l.req.GetHistory() {
		if past.chosen, err = l.history.Recent(time.Unix(0, since)); err != nil {
			return err
		}
		past.some = true
	}
	t.Each(0, func(r *table.Row) bool {
		if l.req.GetHistory() {
			if err = past.upTo(r.Place()); err != nil {
				return false
			}
		} else if r.Final {
			return true
		}
		if l.admitsRow(r) {
			err = l.tellRow(r)
		}
		return err == nil
	})
	if err == nil && l.req.GetHistory() {
		err = past.upTo(0)
	}
	return err
}

func (l *listing) admitsRow(r *table.Row) bool {
	owners := l.req.GetOwners()
	return (len(owners) == 0 || slices.Contains(owners, r.Owner)) && (!l.req.GetEnded() || r.Final)
}

// wish is what the history is asked for.
func (l *listing) wish() history.Wish {
	return history.Wish{Owners: l.req.GetOwners(), Ads: l.req.GetAds(), Make: l.pastRow}
}

// tellRow sends a row. With ads it is held back until there are some, so that the loop is asked once for all of them what only it knows.
func (l *listing) tellRow(r *table.Row) error {
	if !l.req.GetAds() {
		return l.to(line{at: r.Time(), text: l.view.text(r)})
	}
	if l.held = append(l.held, r); len(l.held) < heldMost {
		return nil
	}
	return l.sendHeld()
}

// heldMost is how many rows are held back at most.
const heldMost = 200

// sendHeld sends the rows that are held back, with their ads, and with what is told of jobs by looking at others or at all their tasks.
func (l *listing) sendHeld() error {
	rows := l.held
	l.held = nil
	more := make([]wire.JobStatus, len(rows))
	if slices.ContainsFunc(rows, func(r *table.Row) bool { return !r.Final }) {
		if err := l.ask(l.ctx, func(time.Time) {
			for i, r := range rows {
				if more[i].Depends = l.queue.Depends(r.Seq); r.Array && !r.Final {
					more[i].Remaining = l.queue.Remaining(r.Seq)
				}
			}
		}); err != nil {
			return err
		}
	}
	for i, r := range rows {
		m := &more[i]
		m.Discreet = !mayRead(l.who, &queue.Status{UID: r.UID})
		m.Ad, _ = classad.Pick(r.Ad, func(name string) bool {
			return l.wanted(name) && !(m.Discreet && slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(p, name) }))
		})
		behind, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		text := l.view.text(r)
		if err := l.to(line{at: r.Time(), text: append(text[:len(text):len(text)], behind...)}); err != nil {
			return err
		}
	}
	return nil
}

// tellWord tells of what one word names: a job from the table, or from the history, and everything else as other queries do.
func (l *listing) tellWord(t *table.Table, word string) error {
	id, err := roost.ParseJobID(strings.Replace(word, "[]", "", 1), l.node.Name)
	if err != nil || l.req.GetTasks() || id.Host != l.node.Name {
		return l.tellOne(word)
	}
	if r := t.Get(id.Seq); r != nil {
		if r.Final && !l.req.GetHistory() {
			return fmt.Errorf("%v: %w", id, roost.Finished)
		}
		return l.tellRow(r)
	}
	if !l.req.GetHistory() {
		return l.present(queue.Target{Job: id})
	}
	r, err := l.history.Row(id.Seq, l.wish())
	if err != nil {
		return l.present(queue.Target{Job: id})
	}
	return l.tellRow(r)
}

// tellOne tells of a word by the means of other queries.
func (l *listing) tellOne(word string) error {
	if err := l.sendHeld(); err != nil {
		return err
	}
	req := proto.CloneOf(l.req)
	req.Table, req.Selection = false, &wire.Selection{Selectors: []string{word}}
	req.Tasks = req.Tasks || strings.Contains(word, "[") && !strings.Contains(word, "[]")
	found := false
	one := &listing{Schedd: l.Schedd, ctx: l.ctx, req: req, who: l.who, left: -1, to: func(t line) error { found = true; return l.to(t) }}
	err := one.run()
	if err == nil && !found {
		return roost.NotFound
	}
	return err
}

// pastRows goes through the jobs of the history in the order of their numbers. It never keeps more than a few, and keeps nothing open while they are sent, so that
// somebody who reads slowly holds up nobody.
type pastRows struct {
	*listing
	next   uint64 // the number from which on nothing was told yet
	some   bool   // only the chosen ones
	chosen []uint64
	over   bool
	rows   []*table.Row
	queued *table.Table
}

// pastTurn is how many jobs of the history are read at a time.
const pastTurn = 256

// upTo tells of the jobs of the past before that number, or with 0 of all that are left, but for those that the table has.
func (p *pastRows) upTo(seq uint64) error {
	for {
		for len(p.rows) > 0 && (seq == 0 || p.rows[0].Seq < seq) {
			r := p.rows[0]
			p.rows = p.rows[1:]
			if p.queued.Get(r.Seq) == nil && p.admitsRow(r) {
				if err := p.tellRow(r); err != nil {
					return err
				}
			}
		}
		if len(p.rows) > 0 || p.over {
			return nil
		}
		if err := p.read(); err != nil {
			return err
		}
	}
}

// read reads more of them.
func (p *pastRows) read() (err error) {
	if p.some {
		n := min(pastTurn, len(p.chosen))
		p.rows, err = p.history.RowsOf(p.chosen[:n], p.wish())
		p.chosen = p.chosen[n:]
		p.over = len(p.chosen) == 0
		return err
	}
	if p.rows, err = p.history.Rows(p.next, pastTurn, p.wish()); err != nil {
		return err
	}
	if p.over = len(p.rows) < pastTurn; len(p.rows) > 0 {
		p.next = p.rows[len(p.rows)-1].Seq + 1
	}
	return nil
}
