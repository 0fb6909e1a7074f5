package reports

import (
	"cmp"
	"errors"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// jobID is an id on a command line: "12", "12_3" or "12_[1-4,7]".
type jobID struct {
	number  uint64
	indexes []string // of an array; none: all of it
	step    string   // "batch" of "12.batch"
}

// parseJobID reads an id.
func parseJobID(text string) (id jobID, ok bool) {
	text, id.step, _ = strings.Cut(text, ".")
	number, index, isTask := strings.Cut(text, "_")
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || number[0] < '0' || number[0] > '9' || n == 0 {
		return id, false
	}
	if id.number = n; !isTask {
		return id, true
	}
	index, _, _ = strings.Cut(index, "%")
	if strings.HasPrefix(index, "[") && !strings.HasSuffix(index, "]") {
		index += "]"
	}
	indexes, err := hostlist.Expand("[" + strings.Trim(index, "[]") + "]")
	id.indexes = indexes
	return id, err == nil
}

// selectors are the names by which the schedd knows what the id names.
func (id jobID) selectors() []string {
	number := strconv.FormatUint(id.number, 10)
	if len(id.indexes) == 0 {
		return []string{number}
	}
	all := make([]string, len(id.indexes))
	for i, index := range id.indexes {
		all[i] = number + "[" + index + "]"
	}
	return all
}

// splitIDs cuts a list of ids at its commas outside of brackets.
func splitIDs(text string) (ids []string) {
	depth, start := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case (r == ',' || r == ' ') && depth <= 0:
			if i > start {
				ids = append(ids, text[start:i])
			}
			start = i + 1
		}
	}
	return ids
}

// includes reports whether a job is what the id names, or a part of it.
func (id jobID) includes(j *records.Job) bool {
	if id.number != j.Number {
		return len(id.indexes) == 0 && j.IsTask && id.number == j.RawNumber()
	}
	return len(id.indexes) == 0 || j.IsTask && slices.Contains(id.indexes, j.Indexes)
}

// namesTask reports whether the id may name a task of an array.
func (id jobID) namesTask(array uint64, s *scheddapi.JobStatus) bool {
	return len(id.indexes) > 0 || id.number > array && id.number-array < uint64(s.GetTasks())
}

// jobQuery is which jobs are asked for.
type jobQuery struct {
	ids      []jobID
	users    []string
	ended    bool  // also jobs that have ended
	since    int64 // those since then only, unix nanoseconds; 0: all
	each     bool  // tasks of arrays that wait are rows of their own
	ads      bool
	script   bool // the ads have the script, too
	unlisted int  // ids that stand for nothing, after the query

	groups map[int64]string // names of Unix groups that were looked up; empty: there is none
}

// find asks the schedd for jobs. It asks once more if there are arrays of which tasks run
// or have ended.
func (q *jobQuery) find(c *frame.Invocation) ([]*records.Job, error) {
	node, err := c.ServerName()
	if err != nil {
		return nil, err
	}
	node = cmp.Or(c.ScheddNode, node)
	req := &scheddapi.QueryRequest{Selection: &scheddapi.Selection{}, Table: true, History: q.ended, Owners: q.users,
		Ads: q.ads, Attributes: records.Attributes(), Since: q.since}
	for _, id := range q.ids {
		if s := strconv.FormatUint(id.number, 10); !slices.Contains(req.Selection.Selectors, s) {
			req.Selection.Selectors = append(req.Selection.Selectors, s)
		}
	}
	if len(q.ids) > 0 {
		req.Since = 0
	}
	if q.script {
		req.Attributes = append(req.Attributes, roost.AttrScript)
	}
	rows, missing, err := c.QueryPool(node, req)
	if err == nil {
		err = frame.UnreachableError(missing)
	}
	if err != nil {
		return nil, err
	}
	jobs := make([]*records.Job, 0, len(rows))
	tasks, arrays := &scheddapi.QueryRequest{Selection: &scheddapi.Selection{}, Tasks: true, History: q.ended},
		map[uint64]*scheddapi.JobStatus{}
	byIndex := false
	for _, s := range rows {
		switch {
		case s.GetRefused() != nil:
			q.unlisted++
			continue
		case !records.IsArray(s):
			jobs = append(jobs, q.newJob(s))
			continue
		}
		if s.GetRemaining() != "" && !q.each {
			jobs = append(jobs, q.newJob(s))
		}
		number := records.NewJob(s).Number
		named := slices.ContainsFunc(q.ids, func(id jobID) bool { return id.namesTask(number, s) })
		byIndex = byIndex || named
		if named || q.needsTasks(s) {
			arrays[number] = s
			tasks.Selection.Selectors = append(tasks.Selection.Selectors, strconv.FormatUint(number, 10))
		}
	}
	if len(tasks.Selection.Selectors) > 0 {
		more, err := q.findTasks(c, node, tasks, arrays, byIndex)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, more...)
	}
	return q.choose(jobs), nil
}

// needsTasks reports whether tasks of an array are rows of their own.
func (q *jobQuery) needsTasks(s *scheddapi.JobStatus) bool {
	if q.each || q.ended {
		return true
	}
	for _, state := range activeStates() {
		if s.GetCounts()[state] > 0 {
			return true
		}
	}
	return false
}

// activeStates are the states of tasks that have a machine.
func activeStates() []string {
	return []string{roost.Starting.String(), roost.Running.String(), roost.Suspended.String(),
		roost.Exiting.String()}
}

// findTasks asks for the tasks of arrays that are known.
func (q *jobQuery) findTasks(c *frame.Invocation, node string, req *scheddapi.QueryRequest,
	arrays map[uint64]*scheddapi.JobStatus, byIndex bool) (jobs []*records.Job, err error) {
	if req.Selection.States = activeStates(); q.ended {
		req.Selection.States = append(req.Selection.States, roost.Completed.String(), roost.Removed.String())
	}
	if q.each || byIndex {
		req.Selection.States = nil
	}
	rows, missing, err := c.QueryPool(node, req)
	if errors.Is(err, roost.NotFound) { // they have just ended
		return nil, nil
	}
	if err == nil {
		err = frame.UnreachableError(missing)
	}
	for _, s := range rows {
		state, known := roost.ParseTaskState(s.GetState())
		if s.GetRefused() != nil || known != nil {
			continue
		}
		waits := !state.IsActive() && !state.IsFinal()
		array := arrays[records.NewJob(s).Number]
		if s.Ad = array.GetAd(); waits && !q.each && !byIndex {
			continue
		}
		if state == roost.Blocked {
			s.Depends = array.GetDepends()
		}
		jobs = append(jobs, q.newJob(s))
	}
	return jobs, err
}

// newJob is a row with the name of its user's group as this host knows it. A job that
// asks for a group by its name has that.
func (q *jobQuery) newJob(s *scheddapi.JobStatus) *records.Job {
	j := records.NewJob(s)
	gid, ok := j.Ad.Int(roost.AttrOwnerGID)
	if _, named := j.Ad.Str(roost.AttrUnixGroup); named || !ok {
		return j
	}
	name, known := q.groups[gid]
	if !known {
		if g, err := user.LookupGroupId(strconv.FormatInt(gid, 10)); err == nil {
			name = g.Name
		}
		if q.groups == nil {
			q.groups = map[int64]string{}
		}
		q.groups[gid] = name
	}
	if name != "" {
		j.Ad.SetString(roost.AttrUnixGroup, name)
	}
	return j
}

// choose leaves out what the ids do not name, and orders the rest by id.
func (q *jobQuery) choose(jobs []*records.Job) []*records.Job {
	if len(q.ids) > 0 {
		jobs = slices.DeleteFunc(jobs, func(j *records.Job) bool {
			return !slices.ContainsFunc(q.ids, func(id jobID) bool { return id.includes(j) })
		})
	}
	slices.SortStableFunc(jobs, func(a, b *records.Job) int {
		switch {
		case a.Number != b.Number:
			return int(min(max(int64(a.Number)-int64(b.Number), -1), 1))
		case a.IsTask != b.IsTask && a.IsTask:
			return 1
		case a.IsTask != b.IsTask:
			return -1
		}
		return int(a.GetIndex()) - int(b.GetIndex())
	})
	return jobs
}
