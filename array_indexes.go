package roost

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// ArrayIndexes are the users' indexes of an array's tasks, in rising order. The text form
// is "0-9", "1-9:2" or "1,5,7-9", as in qsub -J (OpenPBS) and qsub -t (Torque). Task i
// has the i-th index. Memory depends on the number of ranges, not of indexes.
type ArrayIndexes struct {
	ranges     []indexRange // in rising order: each range begins after the end of the one before
	firstTasks []int        // by range: the task with its first index
	count      int
}

// indexRange is the sequence first, first+step, …, last.
type indexRange struct{ first, last, step int }

func (r indexRange) len() int { return (r.last-r.first)/r.step + 1 }

// maxMixedIndexes bounds the number of indexes in ranges that overlap, because those are
// expanded one by one.
const maxMixedIndexes = 1_000_000

// ParseArrayIndexes reads the text form of ArrayIndexes. An index that is named twice
// counts once. At most MaxTasks indexes are allowed, each below 2^31.
func ParseArrayIndexes(s string) (ArrayIndexes, error) {
	bad := fmt.Errorf("%q is no list of array indexes: write it as 7, 1-9, 1-9:2 or 1,3,5-7", s)
	var rows []indexRange
	n := 0
	for part := range strings.SplitSeq(s, ",") {
		r, ok := parseIndexRange(strings.TrimSpace(part))
		if !ok {
			return ArrayIndexes{}, bad
		}
		if n += r.len(); n > MaxTasks {
			return ArrayIndexes{}, fmt.Errorf("%q has more than %d array indexes", s, MaxTasks)
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b indexRange) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	for i := 1; i < len(rows); i++ {
		if rows[i].first <= rows[i-1].last {
			if n > maxMixedIndexes {
				return ArrayIndexes{}, fmt.Errorf(
					"%q names more than %d array indexes in rows that lie across each other", s, maxMixedIndexes,
				)
			}
			rows = separateRanges(rows)
			break
		}
	}
	x := ArrayIndexes{ranges: rows}
	for _, r := range rows {
		x.firstTasks = append(x.firstTasks, x.count)
		x.count += r.len()
	}
	return x, nil
}

func parseIndexRange(s string) (indexRange, bool) {
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
		return indexRange{}, false
	}
	return indexRange{int(first), int(last - (last-first)%by), int(by)}, true
}

// separateRanges expands overlapping ranges and returns disjoint ranges with step 1.
func separateRanges(rows []indexRange) (out []indexRange) {
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
			out = append(out, indexRange{i, i, 1})
		}
	}
	return out
}

// Len returns the number of indexes.
func (x ArrayIndexes) Len() int { return x.count }

// IndexOf returns the index of a task: 0 <= task < Len().
func (x ArrayIndexes) IndexOf(task int) int {
	i := sort.SearchInts(x.firstTasks, task+1) - 1
	return x.ranges[i].first + (task-x.firstTasks[i])*x.ranges[i].step
}

// TaskOf returns the task that has an index, or false if no task has it.
func (x ArrayIndexes) TaskOf(index int) (int, bool) {
	i := sort.Search(len(x.ranges), func(i int) bool { return x.ranges[i].last >= index })
	if i == len(x.ranges) || index < x.ranges[i].first || (index-x.ranges[i].first)%x.ranges[i].step != 0 {
		return 0, false
	}
	return x.firstTasks[i] + (index-x.ranges[i].first)/x.ranges[i].step, true
}

// FirstTaskFrom returns the first task whose index is at least index, or Len() if there
// is none.
func (x ArrayIndexes) FirstTaskFrom(index int) int {
	i := sort.Search(len(x.ranges), func(i int) bool { return x.ranges[i].last >= index })
	if i == len(x.ranges) {
		return x.count
	}
	r := x.ranges[i]
	return x.firstTasks[i] + (max(index-r.first, 0)+r.step-1)/r.step
}

// RangeText writes the indexes of the tasks first to last, inclusive: 0 <= first <= last
// < Len().
func (x ArrayIndexes) RangeText(first, last int) string {
	part := ArrayIndexes{}
	for i := sort.SearchInts(x.firstTasks, first+1) - 1; i < len(x.ranges) && x.firstTasks[i] <= last; i++ {
		r := x.ranges[i]
		r.first, r.last = x.IndexOf(max(first, x.firstTasks[i])), x.IndexOf(min(last, x.firstTasks[i]+r.len()-1))
		part.ranges = append(part.ranges, r)
	}
	return part.String()
}

// IsPlain reports whether the index of each task is its own number.
func (x ArrayIndexes) IsPlain() bool {
	return len(x.ranges) == 1 && x.ranges[0].first == 0 && (x.ranges[0].step == 1 || x.count == 1)
}

// String returns the text form, from which ParseArrayIndexes reads the same indexes.
func (x ArrayIndexes) String() string {
	parts := make([]string, len(x.ranges))
	for i, r := range x.ranges {
		if parts[i] = strconv.Itoa(r.first); r.last != r.first {
			parts[i] += "-" + strconv.Itoa(r.last)
			if r.step != 1 {
				parts[i] += ":" + strconv.Itoa(r.step)
			}
		}
	}
	return strings.Join(parts, ",")
}
