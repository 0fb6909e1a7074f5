package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TaskSelector is a job, or some tasks of it, that a selector names.
type TaskSelector struct {
	Job roost.JobID
	// none: the whole job; of tasks, or before LocateTasks of the indexes that a user
	// said
	Ranges   []eventlog.IndexRange
	userText string // how the user spelled them; empty before LocateTasks
}

func (t TaskSelector) String() string {
	if len(t.Ranges) == 0 {
		return t.Job.String()
	}
	return fmt.Sprintf("%d[%s].%s", t.Job.Seq, t.rangeText(), t.Job.Host)
}

// eachIndex calls f with each index of the target in a job of that many tasks.
func (t TaskSelector) eachIndex(tasks int, f func(i int)) {
	if len(t.Ranges) == 0 {
		for i := range tasks {
			f(i)
		}
	}
	for _, r := range t.Ranges {
		for i := r.First; i <= min(r.Last, tasks-1); i++ {
			f(i)
		}
	}
}

// nextIndex returns the lowest index of the target, in a job of that many tasks, that is
// not below first.
func (t TaskSelector) nextIndex(first, tasks int) (int, bool) {
	if len(t.Ranges) == 0 {
		return first, first < tasks
	}
	for _, r := range t.Ranges {
		if r.Last >= first {
			return max(r.First, first), max(r.First, first) < tasks
		}
	}
	return 0, false
}

// firstMissingIndex returns an index of the target that a job of that many tasks does not
// have.
func (t TaskSelector) firstMissingIndex(tasks int) (int, bool) {
	for _, r := range t.Ranges {
		if r.Last >= tasks {
			return max(r.First, tasks), true
		}
	}
	return 0, false
}

// appendIndex adds an index that is higher than all in the list.
func appendIndex(list []eventlog.IndexRange, i int) []eventlog.IndexRange {
	if n := len(list); n > 0 && list[n-1].Last == i-1 {
		list[n-1].Last = i
		return list
	}
	return append(list, eventlog.IndexRange{First: i, Last: i})
}

// maxSelectedRanges bounds how many separate indexes one selector may name.
const maxSelectedRanges = 1_000_000

// ParseSelector reads "123", "123.host", "123[]", "123[7]", "123[1-9:2]" and
// "123[1,3-5]". The indexes are those that users know: see LocateTasks.
func ParseSelector(s, host string) (TaskSelector, error) {
	open, end := strings.IndexByte(s, '['), strings.IndexByte(s, ']')
	if open < 0 || end < open || end == open+1 {
		id, err := roost.ParseJobID(s, host)
		if err != nil {
			return TaskSelector{}, fmt.Errorf("%w: %w", roost.Invalid, err)
		}
		return TaskSelector{Job: id}, nil
	}
	id, err := roost.ParseJobID(s[:open]+s[end+1:], host)
	if err != nil {
		return TaskSelector{}, fmt.Errorf("%w: %q is not a job id: write it as 123, 123.host or 123[7].host",
			roost.Invalid, s)
	}
	ranges, err := parseIndexes(s[open+1 : end])
	if err != nil {
		return TaskSelector{}, fmt.Errorf("%q: %w", s, err)
	}
	return TaskSelector{Job: id, Ranges: ranges}, nil
}

// parseIndexes reads "7", "1-9", "1-9:2" and lists of those; the result is in order and
// without repetition.
func parseIndexes(s string) ([]eventlog.IndexRange, error) {
	bad := fmt.Errorf("%w: %q is no list of task indexes: write it as 7, 1-9, 1-9:2 or 1,3,5", roost.Invalid, s)
	var picked []eventlog.IndexRange
	for part := range strings.SplitSeq(s, ",") {
		span, by, stepped := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(span, "-")
		a, err := strconv.ParseUint(first, 10, 31)
		b, step := a, uint64(1)
		if err == nil && ranged {
			b, err = strconv.ParseUint(last, 10, 31)
		}
		if err == nil && stepped {
			step, err = strconv.ParseUint(by, 10, 31)
		}
		if err != nil || b < a || step == 0 {
			return nil, bad
		}
		if step == 1 {
			picked = append(picked, eventlog.IndexRange{First: int(a), Last: int(b)})
			continue
		}
		if (b-a)/step > maxSelectedRanges {
			return nil, fmt.Errorf("%w: %q names more than %d tasks one by one", roost.Exhausted, s, maxSelectedRanges)
		}
		for i := a; i <= b; i += step {
			picked = append(picked, eventlog.IndexRange{First: int(i), Last: int(i)})
		}
	}
	slices.SortFunc(picked, func(a, b eventlog.IndexRange) int { return cmp.Compare(a.First, b.First) })
	merged := picked[:1]
	for _, r := range picked[1:] {
		if top := &merged[len(merged)-1]; r.First <= top.Last+1 {
			top.Last = max(top.Last, r.Last)
		} else {
			merged = append(merged, r)
		}
	}
	return merged, nil
}
