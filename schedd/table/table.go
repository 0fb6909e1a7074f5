// Package table provides a copy of the job rows of a queue for readers. A long list, or a
// thousand clients that ask every few seconds, must not block the goroutine that owns the
// queue. A table is immutable; a newer one shares all unchanged parts with it, so that
// the cost of a new table depends on the number of changes and not on its size.
package table

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/roost-batch/roost/schedd/queue/adtext"
)

// JobRow is the row of one job. It is immutable.
type JobRow struct {
	Seq       uint64
	Owner     string
	Submitted int64         // unix nanoseconds
	OrderSeq  uint64        // number of the job whose place in lists it takes; 0: its own
	OrderTime int64         // submit time of the job whose place it takes, unix nanoseconds; 0: its own
	RequestID uint64        // ID of the request whose explanation belongs to it; 0: none
	Text      adtext.Packed // the row as it is sent
	Ad        adtext.Packed
	Terms     *SearchTerms // nil: they are only in the text
	UID       uint32
	IsFinal   bool // all its tasks have ended
	IsArray   bool // it was submitted as several tasks
}

// OrderNumber returns the number of the job whose place in lists this job takes. It is
// the job's own number unless two jobs have swapped places.
func (r *JobRow) OrderNumber() uint64 { return cmp.Or(r.OrderSeq, r.Seq) }

// OrderedAt returns the submit time of the job whose place it takes, in unix nanoseconds.
func (r *JobRow) OrderedAt() int64 { return cmp.Or(r.OrderTime, r.Submitted) }

// pageSize is the number of job numbers per page. A change copies a page and the list of
// pages: with 100,000 jobs both are of similar length.
const pageSize = 256

type rowPage struct {
	number uint64 // number of its first job, divided by pageSize
	rows   [pageSize]*JobRow
	used   int
}

// Table contains rows by job number. The zero value is empty.
type Table struct {
	pages     []*rowPage // in order of their numbers, none of them empty
	reordered []*JobRow  // rows that take the place of another, in the order of these places
	count     int
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.count }

// findPage returns the index of a page, or where it would be.
func (t *Table) findPage(number uint64) (int, bool) {
	return slices.BinarySearchFunc(t.pages, number, func(p *rowPage, n uint64) int {
		switch {
		case p.number < n:
			return -1
		case p.number > n:
			return 1
		}
		return 0
	})
}

// Get returns the row of a job, or nil if there is none.
func (t *Table) Get(seq uint64) *JobRow {
	i, ok := t.findPage(seq / pageSize)
	if !ok {
		return nil
	}
	return t.pages[i].rows[seq%pageSize]
}

// Each calls f with the rows from a place on, in their order, until f returns false.
func (t *Table) Each(from uint64, f func(*JobRow) bool) {
	moved, _ := slices.BinarySearchFunc(t.reordered, from, func(r *JobRow, from uint64) int {
		return cmp.Compare(r.OrderNumber(), from)
	})
	movedTo := func(place uint64) bool { // reports whether f wants more
		for ; moved < len(t.reordered) && t.reordered[moved].OrderNumber() <= place; moved++ {
			if !f(t.reordered[moved]) {
				return false
			}
		}
		return true
	}
	for i, _ := t.findPage(from / pageSize); i < len(t.pages); i++ {
		for _, r := range t.pages[i].rows {
			switch {
			case r == nil || r.Seq < from || r.OrderNumber() != r.Seq:
			case !movedTo(r.Seq) || !f(r):
				return
			}
		}
	}
	movedTo(math.MaxUint64)
}

// EachBefore calls f with the rows at places before a place, the last first, until f
// returns false.
func (t *Table) EachBefore(before uint64, f func(*JobRow) bool) {
	moved, _ := slices.BinarySearchFunc(t.reordered, before, func(r *JobRow, before uint64) int {
		return cmp.Compare(r.OrderNumber(), before)
	})
	movedFrom := func(place uint64) bool { // reports whether f wants more
		for ; moved > 0 && t.reordered[moved-1].OrderNumber() >= place; moved-- {
			if !f(t.reordered[moved-1]) {
				return false
			}
		}
		return true
	}
	i, found := t.findPage(before / pageSize)
	if !found {
		i--
	}
	for ; i >= 0; i-- {
		for _, r := range slices.Backward(t.pages[i].rows[:]) {
			switch {
			case r == nil || r.Seq >= before || r.OrderNumber() != r.Seq:
			case !movedFrom(r.Seq+1) || !f(r):
				return
			}
		}
	}
	movedFrom(0)
}

// WithRows returns the table with some rows replaced. A nil row removes the row.
func (t *Table) WithRows(changed map[uint64]*JobRow) *Table {
	next := &Table{count: t.count, pages: slices.Clone(t.pages), reordered: t.reordered}
	own := map[uint64]*rowPage{}
	for _, seq := range slices.Sorted(maps.Keys(changed)) {
		row, number := changed[seq], seq/pageSize
		p := own[number]
		if p == nil {
			i, ok := next.findPage(number)
			switch {
			case ok:
				copied := *next.pages[i]
				p, next.pages[i] = &copied, &copied
			case row == nil:
				continue
			default:
				p = &rowPage{number: number}
				next.pages = slices.Insert(next.pages, i, p)
			}
			own[number] = p
		}
		at := &p.rows[seq%pageSize]
		switch {
		case *at == nil && row != nil:
			p.used, next.count = p.used+1, next.count+1
		case *at != nil && row == nil:
			p.used, next.count = p.used-1, next.count-1
		}
		if isReordered(*at) || isReordered(row) {
			next.insertReordered(*at, row)
		}
		*at = row
	}
	next.pages = slices.DeleteFunc(next.pages, func(p *rowPage) bool { return p.used == 0 })
	return next
}

// isReordered reports whether a row takes the place of another.
func isReordered(r *JobRow) bool { return r != nil && r.OrderNumber() != r.Seq }

// insertReordered replaces an older row by row in the list of reordered rows.
func (t *Table) insertReordered(old, row *JobRow) {
	t.reordered = slices.DeleteFunc(slices.Clone(t.reordered), func(r *JobRow) bool { return r == old })
	if isReordered(row) {
		i, _ := slices.BinarySearchFunc(t.reordered, row, func(a, b *JobRow) int {
			return cmp.Compare(a.OrderNumber(), b.OrderNumber())
		})
		t.reordered = slices.Insert(t.reordered, i, row)
	}
}
