// Package table is a copy of what is told of the jobs of a queue, for those who only
// read: a long list, or a thousand clients that ask every few seconds, must not hold up
// the one who owns the queue. A table never changes; a newer one shares with it all that
// is the same, so that making it costs what has changed and not how much there is.
package table

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// JobRow is what is told of one job. Nothing in it changes.
type JobRow struct {
	Seq       uint64
	Owner     string
	UID       uint32
	Submitted int64  // unix nanoseconds
	OrderSeq  uint64 // the number of the job whose place it has; 0: its own
	OrderTime int64  // when the job of that place was submitted, unix nanoseconds; 0: when it was itself
	IsFinal   bool   // all its tasks have ended
	IsArray   bool   // it was submitted as several tasks
	RequestID uint64 // the request whose explanation belongs to it; 0: none
	Text      []byte // the row, as it is sent
	Ad        string
}

// OrderNumber is the number of the job whose place in lists it has: its own, or of the
// one that it has changed places with.
func (r *JobRow) OrderNumber() uint64 { return cmp.Or(r.OrderSeq, r.Seq) }

// OrderedAt is when the job of that place was submitted, unix nanoseconds.
func (r *JobRow) OrderedAt() int64 { return cmp.Or(r.OrderTime, r.Submitted) }

// pageSize is how many numbers of jobs a page has. A change copies a page, and a list of
// pages: with 100,000 jobs they are about as long.
const pageSize = 256

type rowPage struct {
	number uint64 // of its first job, over pageSize
	rows   [pageSize]*JobRow
	used   int
}

// Table is rows by the numbers of their jobs. The zero value has none.
type Table struct {
	pages     []*rowPage // in order of their numbers, none of them empty
	reordered []*JobRow  // those that have the place of another, in the order of their places
	count     int
}

// Len is the number of rows.
func (t *Table) Len() int { return t.count }

// findPage is where a page is, or would be.
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

// Get returns the row of a job; nil when there is none.
func (t *Table) Get(seq uint64) *JobRow {
	i, ok := t.findPage(seq / pageSize)
	if !ok {
		return nil
	}
	return t.pages[i].rows[seq%pageSize]
}

// Each calls f with the rows whose places are at least that, in their order, until f
// returns false.
func (t *Table) Each(from uint64, f func(*JobRow) bool) {
	moved, _ := slices.BinarySearchFunc(t.reordered, from, func(r *JobRow, from uint64) int {
		return cmp.Compare(r.OrderNumber(), from)
	})
	movedTo := func(place uint64) bool { // f wants more
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

// WithRows returns the table with some rows in place of those that there were. A nil row
// stands for none.
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

// isReordered reports whether a row has the place of another.
func isReordered(r *JobRow) bool { return r != nil && r.OrderNumber() != r.Seq }

// insertReordered puts a row in the place of an older one among those that have the place
// of another.
func (t *Table) insertReordered(old, row *JobRow) {
	t.reordered = slices.DeleteFunc(slices.Clone(t.reordered), func(r *JobRow) bool { return r == old })
	if isReordered(row) {
		i, _ := slices.BinarySearchFunc(t.reordered, row, func(a, b *JobRow) int {
			return cmp.Compare(a.OrderNumber(), b.OrderNumber())
		})
		t.reordered = slices.Insert(t.reordered, i, row)
	}
}
