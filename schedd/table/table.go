// Package table is a copy of what is told of the jobs of a queue, for those who only read: a long list, or a thousand clients that ask every few seconds,
// must not hold up the one who owns the queue. A table never changes; a newer one shares with it all that is the same, so that making it costs what
// has changed and not how much there is.
package table

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Row is what is told of one job. Nothing in it changes.
type Row struct {
	Seq       uint64
	Owner     string
	UID       uint32
	Submitted int64  // unix nanoseconds
	Rank      uint64 // the number of the job whose place it has; 0: its own
	Since     int64  // when the job of that place was submitted, unix nanoseconds; 0: when it was itself
	Final     bool   // all its tasks have ended
	Array     bool   // it was submitted as several tasks
	Waits     uint64 // the request whose explanation belongs to it; 0: none
	Text      []byte // the row, as it is sent
	Ad        string
}

// Place is the number of the job whose place in lists it has: its own, or of the one that it has changed places with.
func (r *Row) Place() uint64 { return cmp.Or(r.Rank, r.Seq) }

// Time is when the job of that place was submitted, unix nanoseconds.
func (r *Row) Time() int64 { return cmp.Or(r.Since, r.Submitted) }

// pageSize is how many numbers of jobs a page has. A change copies a page, and a list of pages: with 100,000 jobs they are about as long.
const pageSize = 256

type page struct {
	number uint64 // of its first job, over pageSize
	rows   [pageSize]*Row
	used   int
}

// Table is rows by the numbers of their jobs. The zero value has none.
type Table struct {
	pages []*page // in order of their numbers, none of them empty
	moved []*Row  // those that have the place of another, in the order of their places
	n     int
}

// Len is the number of rows.
func (t *Table) Len() int { return t.n }

// find is where a page is, or would be.
func (t *Table) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(t.pages, number, func(p *page, n uint64) int {
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
func (t *Table) Get(seq uint64) *Row {
	i, ok := t.find(seq / pageSize)
	if !ok {
		return nil
	}
	return t.pages[i].rows[seq%pageSize]
}

// Each calls f with the rows whose places are at least that, in their order, until f returns false.
func (t *Table) Each(from uint64, f func(*Row) bool) {
	moved, _ := slices.BinarySearchFunc(t.moved, from, func(r *Row, from uint64) int { return cmp.Compare(r.Place(), from) })
	movedTo := func(place uint64) bool { // f wants more
		for ; moved < len(t.moved) && t.moved[moved].Place() <= place; moved++ {
			if !f(t.moved[moved]) {
				return false
			}
		}
		return true
	}
	for i, _ := t.find(from / pageSize); i < len(t.pages); i++ {
		for _, r := range t.pages[i].rows {
			switch {
			case r == nil || r.Seq < from || r.Place() != r.Seq:
			case !movedTo(r.Seq) || !f(r):
				return
			}
		}
	}
	movedTo(math.MaxUint64)
}

// With returns the table with some rows in place of those that there were. A nil row stands for none.
func (t *Table) With(changed map[uint64]*Row) *Table {
	next := &Table{n: t.n, pages: slices.Clone(t.pages), moved: t.moved}
	own := map[uint64]*page{}
	for _, seq := range slices.Sorted(maps.Keys(changed)) {
		row, number := changed[seq], seq/pageSize
		p := own[number]
		if p == nil {
			i, ok := next.find(number)
			switch {
			case ok:
				copied := *next.pages[i]
				p, next.pages[i] = &copied, &copied
			case row == nil:
				continue
			default:
				p = &page{number: number}
				next.pages = slices.Insert(next.pages, i, p)
			}
			own[number] = p
		}
		at := &p.rows[seq%pageSize]
		switch {
		case *at == nil && row != nil:
			p.used, next.n = p.used+1, next.n+1
		case *at != nil && row == nil:
			p.used, next.n = p.used-1, next.n-1
		}
		if out(*at) || out(row) {
			next.move(*at, row)
		}
		*at = row
	}
	next.pages = slices.DeleteFunc(next.pages, func(p *page) bool { return p.used == 0 })
	return next
}

// out reports whether a row has the place of another.
func out(r *Row) bool { return r != nil && r.Place() != r.Seq }

// move puts a row in the place of an older one among those that have the place of another.
func (t *Table) move(old, row *Row) {
	t.moved = slices.DeleteFunc(slices.Clone(t.moved), func(r *Row) bool { return r == old })
	if out(row) {
		i, _ := slices.BinarySearchFunc(t.moved, row, func(a, b *Row) int { return cmp.Compare(a.Place(), b.Place()) })
		t.moved = slices.Insert(t.moved, i, row)
	}
}
