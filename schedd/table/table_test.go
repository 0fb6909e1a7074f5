package table

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTable checks that a table equals a map after the same changes. So must each older
// table that is still in use.
func TestTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	now, want := &Table{}, map[uint64]*JobRow{}
	type storedRow struct {
		table *Table
		rows  map[uint64]*JobRow
	}
	var old []storedRow
	for round := range 400 {
		changed := map[uint64]*JobRow{}
		for range rng.IntN(40) {
			seq := rng.Uint64N(2000)
			if rng.IntN(50) == 0 {
				seq += 1 << 40
			}
			if changed[seq] = nil; rng.IntN(3) > 0 {
				changed[seq] = &JobRow{Seq: seq}
				if rng.IntN(4) == 0 {
					changed[seq].OrderSeq = seq ^ 1
				}
			}
		}
		if round == 300 {
			for seq := range want {
				changed[seq] = nil
			}
		}
		now = now.WithRows(changed)
		for seq, row := range changed {
			if want[seq] = row; row == nil {
				delete(want, seq)
			}
		}
		old = append(old, storedRow{now, maps.Clone(want)})
		if len(old) > 5 {
			old = old[1:]
		}
		for _, k := range old {
			k.table.check(t)
			if k.table.Len() != len(k.rows) {
				t.Fatalf("round %d: %d rows, want %d", round, k.table.Len(), len(k.rows))
			}
			from := rng.Uint64N(2000)
			var back []*JobRow
			k.table.EachBefore(from, func(r *JobRow) bool { back = append(back, r); return true })
			k.table.checkBefore(t, from, back)
			var got, all []*JobRow
			k.table.Each(from, func(r *JobRow) bool { got = append(got, r); return true })
			for _, seq := range slices.Sorted(maps.Keys(k.rows)) {
				if k.table.Get(seq) != k.rows[seq] {
					t.Fatalf("round %d: row %d is another", round, seq)
				}
				if k.rows[seq].OrderNumber() >= from {
					all = append(all, k.rows[seq])
				}
			}
			slices.SortFunc(all, func(a, b *JobRow) int { // a row that was moved comes before the one with that number
				return cmp.Or(cmp.Compare(a.OrderNumber(), b.OrderNumber()), cmp.Compare(b.OrderSeq, a.OrderSeq))
			})
			if !slices.Equal(got, all) {
				t.Fatalf("round %d, from %d: got %v, want %v", round, from, got, all)
			}
		}
	}
	if now.Get(1<<50) != nil || (&Table{}).Get(1) != nil {
		t.Error("there is a row that there is not")
	}
}

// check checks the invariants of a table.
func (t *Table) check(tb testing.TB) {
	tb.Helper()
	n := 0
	for i, p := range t.pages {
		used := 0
		for at, r := range p.rows {
			if r != nil {
				if used++; r.Seq != p.number*pageSize+uint64(at) {
					tb.Fatalf("row %d stands at %d of page %d", r.Seq, at, p.number)
				}
			}
		}
		if used != p.used || used == 0 || i > 0 && t.pages[i-1].number >= p.number {
			tb.Fatalf("page %d: %d of %d used, behind page %d", p.number, used, p.used, t.pages[max(i-1, 0)].number)
		}
		n += used
	}
	if n != t.count {
		tb.Fatalf("%d rows, and it says %d", n, t.count)
	}
}

// checkBefore compares the rows before a place with all rows, in the other direction.
func (t *Table) checkBefore(tb *testing.T, before uint64, got []*JobRow) {
	tb.Helper()
	var want []*JobRow
	t.Each(0, func(r *JobRow) bool {
		if r.OrderNumber() < before {
			want = append(want, r)
		}
		return true
	})
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		tb.Fatalf("before %d: got %d rows, want %d", before, len(got), len(want))
	}
}
