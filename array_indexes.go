package roost

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// ArrayIndexes are the indexes that the tasks of an array have for those who submitted
// it, in rising order: a text such as "0-9", "1-9:2" or "1,5,7-9", as qsub -J (OpenPBS)
// and qsub -t (Torque) have it. Task i has the i-th of them. The text is kept however
// many they are.
type ArrayIndexes struct {
	ranges     []indexRange // rising: the last index of a row is less than the first of the next
	firstTasks []int        // by row: the task that has its first index
	count      int
}

// indexRange is first, first+step, …, last.
type indexRange struct{ first, last, step int }

func (r indexRange) len() int { return (r.last-r.first)/r.step + 1 }

// maxMixedIndexes bounds how many indexes there may be where rows lie across each other,
// for then they are counted one by one.
const maxMixedIndexes = 1_000_000

// ParseArrayIndexes reads such a text. An index that is named twice counts once. There
// are at most MaxTasks, each below 2^31.
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

// separateRanges makes rows without steps of rows that lie across each other.
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

// Len is how many there are.
func (x ArrayIndexes) Len() int { return x.count }

// IndexOf is the index of a task: 0 <= task < Len().
func (x ArrayIndexes) IndexOf(task int) int {
	i := sort.SearchInts(x.firstTasks, task+1) - 1
	return x.ranges[i].first + (task-x.firstTasks[i])*x.ranges[i].step
}

// TaskOf is the task that has an index; false if none has.
func (x ArrayIndexes) TaskOf(index int) (int, bool) {
	i := sort.Search(len(x.ranges), func(i int) bool { return x.ranges[i].last >= index })
	if i == len(x.ranges) || index < x.ranges[i].first || (index-x.ranges[i].first)%x.ranges[i].step != 0 {
		return 0, false
	}
	return x.firstTasks[i] + (index-x.ranges[i].first)/x.ranges[i].step, true
}

// FirstTaskFrom is the first task whose index is at least that; Len() if none's is.
func (x ArrayIndexes) FirstTaskFrom(index int) int {
	i := sort.Search(len(x.ranges), func(i int) bool { return x.ranges[i].last >= index })
	if i == len(x.ranges) {
		return x.count
	}
	r := x.ranges[i]
	return x.firstTasks[i] + (max(index-r.first, 0)+r.step-1)/r.step
}

// RangeText writes the indexes of the tasks first to last, both included: 0 <= first <=
// last < Len().
func (x ArrayIndexes) RangeText(first, last int) string {
	part := ArrayIndexes{}
	for i := sort.SearchInts(x.firstTasks, first+1) - 1; i < len(x.ranges) && x.firstTasks[i] <= last; i++ {
		r := x.ranges[i]
		r.first, r.last = x.IndexOf(max(first, x.firstTasks[i])), x.IndexOf(min(last, x.firstTasks[i]+r.len()-1))
		part.ranges = append(part.ranges, r)
	}
	return part.String()
}

// IsPlain reports whether every task has its own number for an index.
func (x ArrayIndexes) IsPlain() bool {
	return len(x.ranges) == 1 && x.ranges[0].first == 0 && (x.ranges[0].step == 1 || x.count == 1)
}

// String writes them so that ParseArrayIndexes reads the same.
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
