package roost

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Indexes are the indexes that the tasks of an array have for those who submitted it, in rising order: a text such as "0-9", "1-9:2" or "1,5,7-9", as
// qsub -J (OpenPBS) and qsub -t (Torque) have it. Task i has the i-th of them. The text is kept however many they are.
type Indexes struct {
	rows []indexRow // rising: the last index of a row is less than the first of the next
	from []int      // by row: the task that has its first index
	n    int
}

// indexRow is first, first+step, …, last.
type indexRow struct{ first, last, step int }

func (r indexRow) len() int { return (r.last-r.first)/r.step + 1 }

// maxMixed bounds how many indexes there may be where rows lie across each other, for then they are counted one by one.
const maxMixed = 1_000_000

// ParseIndexes reads such a text. An index that is named twice counts once. There are at most MaxTasks, each below 2^31.
func ParseIndexes(s string) (Indexes, error) {
	bad := fmt.Errorf("%q is no list of array indexes: write it as 7, 1-9, 1-9:2 or 1,3,5-7", s)
	var rows []indexRow
	n := 0
	for part := range strings.SplitSeq(s, ",") {
		r, ok := parseIndexRow(strings.TrimSpace(part))
		if !ok {
			return Indexes{}, bad
		}
		if n += r.len(); n > MaxTasks {
			return Indexes{}, fmt.Errorf("%q has more than %d array indexes", s, MaxTasks)
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b indexRow) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
	for i := 1; i < len(rows); i++ {
		if rows[i].first <= rows[i-1].last {
			if n > maxMixed {
				return Indexes{}, fmt.Errorf("%q names more than %d array indexes in rows that lie across each other", s, maxMixed)
			}
			rows = unmixed(rows)
			break
		}
	}
	x := Indexes{rows: rows}
	for _, r := range rows {
		x.from = append(x.from, x.n)
		x.n += r.len()
	}
	return x, nil
}

func parseIndexRow(s string) (indexRow, bool) {
	span, step, stepped := strings.Cut(s, ":")
	low, high, ranged := strings.Cut(span, "-")
	if !ranged {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 31)
	last, err2 := strconv.ParseUint(high, 10, 31)
	by := uint64(1)
	var err3 error
	if stepped {
		by, err3 = strconv.ParseUint(step, 10, 31)
	}
	if err1 != nil || err2 != nil || err3 != nil || last < first || by < 1 || stepped && !ranged {
		return indexRow{}, false
	}
	return indexRow{int(first), int(last - (last-first)%by), int(by)}, true
}

// unmixed makes rows without steps of rows that lie across each other.
func unmixed(rows []indexRow) (out []indexRow) {
	var all []int
	for _, r := range rows {
		for i := r.first; i <= r.last; i += r.step {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	for _, i := range slices.Compact(all) {
		if n := len(out); n > 0 && out[n-1].last == i-1 {
			out[n-1].last = i
		} else {
			out = append(out, indexRow{i, i, 1})
		}
	}
	return out
}

// Len is how many there are.
func (x Indexes) Len() int { return x.n }

// At is the index of a task: 0 <= task < Len().
func (x Indexes) At(task int) int {
	i := sort.SearchInts(x.from, task+1) - 1
	return x.rows[i].first + (task-x.from[i])*x.rows[i].step
}

// Task is the task that has an index; false if none has.
func (x Indexes) Task(index int) (int, bool) {
	i := sort.Search(len(x.rows), func(i int) bool { return x.rows[i].last >= index })
	if i == len(x.rows) || index < x.rows[i].first || (index-x.rows[i].first)%x.rows[i].step != 0 {
		return 0, false
	}
	return x.from[i] + (index-x.rows[i].first)/x.rows[i].step, true
}

// From is the first task whose index is at least that; Len() if none's is.
func (x Indexes) From(index int) int {
	i := sort.Search(len(x.rows), func(i int) bool { return x.rows[i].last >= index })
	if i == len(x.rows) {
		return x.n
	}
	r := x.rows[i]
	return x.from[i] + (max(index-r.first, 0)+r.step-1)/r.step
}

// Of writes the indexes of the tasks first to last, both included: 0 <= first <= last < Len().
func (x Indexes) Of(first, last int) string {
	part := Indexes{}
	for i := sort.SearchInts(x.from, first+1) - 1; i < len(x.rows) && x.from[i] <= last; i++ {
		r := x.rows[i]
		r.first, r.last = x.At(max(first, x.from[i])), x.At(min(last, x.from[i]+r.len()-1))
		part.rows = append(part.rows, r)
	}
	return part.String()
}

// Plain reports whether every task has its own number for an index.
func (x Indexes) Plain() bool {
	return len(x.rows) == 1 && x.rows[0].first == 0 && (x.rows[0].step == 1 || x.n == 1)
}

// String writes them so that ParseIndexes reads the same.
func (x Indexes) String() string {
	parts := make([]string, len(x.rows))
	for i, r := range x.rows {
		if parts[i] = strconv.Itoa(r.first); r.last != r.first {
			parts[i] += "-" + strconv.Itoa(r.last)
			if r.step != 1 {
				parts[i] += ":" + strconv.Itoa(r.step)
			}
		}
	}
	return strings.Join(parts, ",")
}
