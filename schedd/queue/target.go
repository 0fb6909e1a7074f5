package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Target is a job, or some tasks of it, that a selector names.
type Target struct {
	Job    roost.JobID
	Ranges []Range // none: the whole job; of tasks, or before Locate of the indexes that a user said
	said   string  // how the user spelled them; empty before Locate
}

func (t Target) String() string {
	if len(t.Ranges) == 0 {
		return t.Job.String()
	}
	return fmt.Sprintf("%d[%s].%s", t.Job.Seq, t.spelled(), t.Job.Host)
}

func (r Range) String() string {
	if r.Last == r.First {
		return strconv.Itoa(r.First)
	}
	return strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last)
}

// each calls f with each index of the target in a job of that many tasks.
func (t Target) each(tasks int, f func(i int)) {
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

// beyond returns an index of the target that a job of that many tasks does not have.
func (t Target) beyond(tasks int) (int, bool) {
	for _, r := range t.Ranges {
		if r.Last >= tasks {
			return max(r.First, tasks), true
		}
	}
	return 0, false
}

// appendIndex adds an index that is higher than all in the list.
func appendIndex(list []Range, i int) []Range {
	if n := len(list); n > 0 && list[n-1].Last == i-1 {
		list[n-1].Last = i
		return list
	}
	return append(list, Range{i, i})
}

// maxSelected bounds how many separate indexes one selector may name.
const maxSelected = 1_000_000

// ParseTarget reads "123", "123.host", "123[]", "123[7]", "123[1-9:2]" and "123[1,3-5]". The indexes are those that users know: see Locate.
func ParseTarget(s, host string) (Target, error) {
	open, end := strings.IndexByte(s, '['), strings.IndexByte(s, ']')
	if open < 0 || end < open || end == open+1 {
		id, err := roost.ParseJobID(s, host)
		if err != nil {
			return Target{}, fmt.Errorf("%w: %w", roost.Invalid, err)
		}
		return Target{Job: id}, nil
	}
	id, err := roost.ParseJobID(s[:open]+s[end+1:], host)
	if err != nil {
		return Target{}, fmt.Errorf("%w: %q is not a job id: write it as 123, 123.host or 123[7].host", roost.Invalid, s)
	}
	ranges, err := parseIndexes(s[open+1 : end])
	if err != nil {
		return Target{}, fmt.Errorf("%q: %w", s, err)
	}
	return Target{Job: id, Ranges: ranges}, nil
}

// parseIndexes reads "7", "1-9", "1-9:2" and lists of those; the result is in order and without repetition.
func parseIndexes(s string) ([]Range, error) {
	bad := fmt.Errorf("%w: %q is no list of task indexes: write it as 7, 1-9, 1-9:2 or 1,3,5", roost.Invalid, s)
	var picked []Range
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
			picked = append(picked, Range{int(a), int(b)})
			continue
		}
		if (b-a)/step > maxSelected {
			return nil, fmt.Errorf("%w: %q names more than %d tasks one by one", roost.Exhausted, s, maxSelected)
		}
		for i := a; i <= b; i += step {
			picked = append(picked, Range{int(i), int(i)})
		}
	}
	slices.SortFunc(picked, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
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

// Filter says which of the jobs in the queue are meant where no id is given.
type Filter struct {
	Owner  string // empty: anybody's
	States []roost.TaskState
	Failed bool // jobs with a failed task
	Name   string
}

// Match lists the jobs that a filter lets through, oldest first.
func (q *Queue) Match(f Filter) []roost.JobID {
	var out []roost.JobID
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		if j := q.jobs[seq]; f.passes(j) {
			out = append(out, j.id(q.host))
		}
	}
	return out
}

func (f Filter) passes(j *job) bool {
	if f.Owner != "" && j.sub.Owner != f.Owner || f.Name != "" && j.plan.name != f.Name {
		return false
	}
	if len(f.States) == 0 && !f.Failed {
		return true
	}
	_, counts, failed := j.tally()
	return f.Failed && failed > 0 || slices.ContainsFunc(f.States, func(s roost.TaskState) bool { return counts[s] > 0 })
}

// Last returns the newest job of an owner.
func (q *Queue) Last(owner string) (roost.JobID, bool) {
	var last uint64
	for seq, j := range q.jobs {
		if j.sub.Owner == owner {
			last = max(last, seq)
		}
	}
	return roost.JobID{Seq: last, Host: q.host}, last > 0
}
