package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Target is a job, or some tasks of it, that a selector names.
type Target struct {
	Job    roost.JobID
	Ranges []Range // ascending and apart; none: the whole job
	Err    error   // why the selector names nothing: the verbs return it
}

func (t Target) String() string {
	if len(t.Ranges) == 0 {
		return t.Job.String()
	}
	parts := make([]string, len(t.Ranges))
	for i, r := range t.Ranges {
		if parts[i] = strconv.Itoa(r.First); r.Last != r.First {
			parts[i] += "-" + strconv.Itoa(r.Last)
		}
	}
	return fmt.Sprintf("%d[%s].%s", t.Job.Seq, strings.Join(parts, ","), t.Job.Host)
}

// beyond returns an index of the target that a job of that many tasks lacks, -1 for none.
func (t Target) beyond(tasks int) int {
	for _, r := range t.Ranges {
		if r.Last >= tasks {
			return max(r.First, tasks)
		}
	}
	return -1
}

// maxSelected bounds how many tasks or jobs one selector may name one by one.
const maxSelected = 1_000_000

// ParseTarget reads "123", "123.host", "123[]", "123[7]", "123[1-9:2]" and "123[1,3-5].host"; a missing host is filled in.
func ParseTarget(s, host string) (Target, error) {
	open, end := strings.IndexByte(s, '['), strings.IndexByte(s, ']')
	head := s
	if open >= 0 && end > open {
		head = s[:open] + s[end+1:]
	}
	id, err := roost.ParseJobID(head, host)
	if err != nil {
		return Target{}, fmt.Errorf("%w: %q is not a job id: write it as 123, 123.host or 123[7].host", roost.Invalid, s)
	}
	t := Target{Job: id}
	if open >= 0 && end > open+1 {
		if t.Ranges, err = parseIndexes(s[open+1 : end]); err != nil {
			return Target{}, fmt.Errorf("%q: %w", s, err)
		}
	}
	return t, nil
}

// parseIndexes reads "7", "1-9", "1-9:2" and lists of those.
func parseIndexes(s string) ([]Range, error) {
	var picked []Range
	for part := range strings.SplitSeq(s, ",") {
		first, last, step, err := parseSpan(part)
		if err != nil {
			return nil, err
		}
		if step == 1 {
			picked = append(picked, Range{first, last})
			continue
		}
		if (last-first)/step+len(picked) > maxSelected {
			return nil, fmt.Errorf("%w: it names more than %d tasks one by one", roost.Exhausted, maxSelected)
		}
		for i := first; i <= last; i += step {
			picked = append(picked, Range{i, i})
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

func parseSpan(s string) (first, last, step int, err error) {
	span, by, stepped := strings.Cut(s, ":")
	from, to, ranged := strings.Cut(span, "-")
	numbers := [...]string{from, from, "1"}
	if ranged {
		numbers[1] = to
	}
	if stepped {
		numbers[2] = by
	}
	var n [3]int
	for i, text := range numbers {
		v, perr := strconv.ParseUint(text, 10, 31)
		if perr != nil {
			return 0, 0, 0, fmt.Errorf("%w: %q is no list of task indexes: write it as 7, 1-9, 1-9:2 or 1,3,5", roost.Invalid, s)
		}
		n[i] = int(v)
	}
	if n[1] < n[0] || n[2] == 0 {
		return 0, 0, 0, fmt.Errorf("%w: %q names no task", roost.Invalid, s)
	}
	return n[0], n[1], n[2], nil
}
