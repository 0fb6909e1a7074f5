package query

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// WindowLine is what a task used within five minutes, or all tasks of a job together that
// have ended.
type WindowLine struct {
	Begin     accounting.Millis   `json:"begin"`
	Attempt   roost.AttemptNumber `json:"attempt,omitempty"` // of a task
	CPUMean   int64               `json:"cpu_mean"`          // thousandths of a core, as the next one
	CPUMax    int64               `json:"cpu_max"`
	Memory    int64               `json:"memory"` // bytes at their highest, as the next two
	Cache     int64               `json:"cache"`
	GPUMemory int64               `json:"gpu_memory"`
	GPUMean   int64               `json:"gpu_mean"` // thousandths of a GPU
	Read      int64               `json:"read"`     // bytes
	Written   int64               `json:"written"`
}

// WindowsOf returns the question about a task, or about all tasks of a job. An empty
// owner stands for any.
func WindowsOf(id string, task uint32, isTask bool, owner string) (q Query, err error) {
	number, rest, _ := strings.Cut(id, ".")
	number, _, _ = strings.Cut(number, "[")
	if _, host, found := strings.Cut(id, "]."); found {
		rest = host
	}
	q = Query{Report: Windows, Owner: owner, Host: rest}
	if q.Job, err = strconv.ParseUint(number, 10, 64); err != nil || rest == "" {
		return q, fmt.Errorf("job %.80q: %w: it is no id of a job", id, roost.Invalid)
	}
	if isTask {
		q.Task = new(int)
		*q.Task = int(task)
	}
	return q, nil
}

// maxHours bounds the hours of attempts that are read for one answer.
const maxHours = 200_000

// windows emits the windows of one task, or the sums over the tasks of a job.
func (q *Query) windows(r accounting.Reader, filter accounting.Filter, emit func(line []byte) error) error {
	job, err := q.job(r, filter)
	if err != nil {
		return err
	}
	first, last := 0, math.MaxInt32
	if q.Task != nil {
		first, last = *q.Task, *q.Task
	}
	var lines []WindowLine
	sums := map[accounting.Millis]*WindowLine{}
	n := 0
	for u, err := range r.JobUsage(job.JobKey, first, last) {
		if err != nil {
			return err
		}
		if n++; n > maxHours {
			break
		}
		for i := range u.Windows {
			if u.Windows[i] == (accounting.UsageSample{}) {
				continue
			}
			w := windowLine(u.Hour+accounting.Millis(i)*accounting.UsageWindow, &u.Windows[i])
			switch {
			case q.Task != nil:
				w.Attempt = u.Attempt
				lines = append(lines, w)
			case u.Ended != 0: // the schedd has the windows of those that run
				w.weigh(u.Started, u.Ended)
				w.addTo(sums)
			}
		}
	}
	for _, w := range slices.SortedFunc(maps.Values(sums), func(a, b *WindowLine) int {
		return cmp.Compare(a.Begin, b.Begin)
	}) {
		lines = append(lines, *w)
	}
	if over := len(lines) - q.limit(); over > 0 {
		lines = lines[over:] // the newest
	}
	return emitAll(lines, nil, q.limit(), emit)
}

func windowLine(begin accounting.Millis, s *accounting.UsageSample) WindowLine {
	return WindowLine{
		Begin: begin, CPUMean: int64(s.CPUMean), CPUMax: int64(s.CPUMax), Memory: int64(s.MemoryMax),
		Cache: int64(s.Cache), GPUMemory: int64(s.GPUMax), GPUMean: s.GPUMean, Read: int64(s.Read),
		Written: int64(s.Written),
	}
}

// weigh reduces the means to the part of the window for which the attempt ran. So
// attempts that follow one another do not count twice.
func (w *WindowLine) weigh(started, ended accounting.Millis) {
	from, to := max(started, w.Begin), min(ended, w.Begin+accounting.UsageWindow)
	part := int64(min(max(to-from, 0), accounting.UsageWindow))
	w.CPUMean = w.CPUMean * part / accounting.UsageWindow
	w.GPUMean = w.GPUMean * part / accounting.UsageWindow
}

func (w *WindowLine) addTo(sums map[accounting.Millis]*WindowLine) {
	sum := sums[w.Begin]
	if sum == nil {
		sum = &WindowLine{Begin: w.Begin}
		sums[w.Begin] = sum
	}
	sum.CPUMean += w.CPUMean
	sum.CPUMax += w.CPUMax
	sum.Memory += w.Memory
	sum.Cache += w.Cache
	sum.GPUMemory += w.GPUMemory
	sum.GPUMean += w.GPUMean
	sum.Read += w.Read
	sum.Written += w.Written
}
