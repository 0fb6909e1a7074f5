package classad

import (
	"cmp"
	"math"
	"slices"
)

// columnIndex indexes a column: it holds the rows sorted by value. It may be stale: rows
// changed since the last sort are marked and are candidates of every search, so a change
// costs next to nothing. Callers must check the rows that it finds.
type columnIndex struct {
	keys         []uint64 // keys of rows, rising; see key
	rows         []int32
	dirty        rowSet
	changedCount int // number of marked rows
}

// markChanged marks a row as changed since the last sort.
func (o *columnIndex) markChanged(i int) {
	if !o.dirty.has(i) {
		o.dirty.set(i, true)
		o.changedCount++
	}
}

func (o *columnIndex) grow(room int) {
	o.dirty = append(make(rowSet, 0, room/64), o.dirty...)[:room/64]
}

// sort builds the index of a column with n rows, or brings it up to date.
func (c *segmentColumn) sort(d *valueDictionary, n int) {
	o := c.index
	if o == nil {
		o = &columnIndex{dirty: make(rowSet, len(c.undefined)), changedCount: n}
		for i := range n {
			o.dirty.set(i, true)
		}
		c.index = o
	}
	type conjunctEntry struct {
		key uint64
		row int32
	}
	fresh := make([]conjunctEntry, 0, o.changedCount)
	for i := range n {
		if o.dirty.has(i) && !c.undefined.has(i) && !c.errors.has(i) {
			if key, ok := c.key(d, i); ok {
				fresh = append(fresh, conjunctEntry{key, int32(i)})
			}
		}
	}
	slices.SortFunc(fresh, func(a, b conjunctEntry) int { return cmp.Compare(a.key, b.key) })
	keys, rows := make([]uint64, 0, n), make([]int32, 0, n)
	for i, row := range o.rows {
		if o.dirty.has(int(row)) {
			continue
		}
		for len(fresh) > 0 && fresh[0].key < o.keys[i] {
			keys, rows, fresh = append(keys, fresh[0].key), append(rows, fresh[0].row), fresh[1:]
		}
		keys, rows = append(keys, o.keys[i]), append(rows, row)
	}
	for _, e := range fresh {
		keys, rows = append(keys, e.key), append(rows, e.row)
	}
	o.keys, o.rows, o.changedCount = keys, rows, 0
	clear(o.dirty)
}

// key returns a row's value as an integer with the same order. ok is false for NaN, which
// no comparison finds.
func (c *segmentColumn) key(d *valueDictionary, i int) (key uint64, ok bool) {
	switch c.class {
	case classInt:
		return intKey(int64(c.cells[i])), true
	case classReal:
		f := math.Float64frombits(c.cells[i])
		return realKey(f), f == f
	}
	return uint64(d.canonicalID[c.cells[i]]), true
}

func intKey(n int64) uint64 { return uint64(n) ^ 1<<63 }

// realKey returns an integer that orders like a double. In IEEE 754, doubles without the
// sign bit are ordered like integers.
func realKey(f float64) uint64 {
	b := math.Float64bits(f + 0) // -0.0 becomes 0.0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// between returns the rows whose value compares with key as op requires, except marked
// rows.
func (o *columnIndex) between(op exprOperator, key uint64) []int32 {
	low, _ := slices.BinarySearch(o.keys, key)
	high := low + sameRun(o.keys[low:], key)
	switch op {
	case opLess:
		return o.rows[:low]
	case opLessEqual:
		return o.rows[:high]
	case opGreater:
		return o.rows[high:]
	case opGreaterEqual:
		return o.rows[low:]
	}
	return o.rows[low:high]
}

// sameRun returns how many leading keys are equal to key. keys is sorted, and none of it
// is less than key.
func sameRun(keys []uint64, key uint64) int {
	n, _ := slices.BinarySearchFunc(keys, key, func(k, key uint64) int {
		if k <= key {
			return -1
		}
		return 1
	})
	return n
}
