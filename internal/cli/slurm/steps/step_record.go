package steps

import (
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/slurm/steptable"
)

// A step writes down what it is and how it ended, for sacct. It is no error where that
// cannot be written: the step runs all the same.

// begin writes down what the step is.
func (r *stepRun) begin() {
	var names []string
	cpus := 0
	for i, m := range r.placement.Machines {
		names = append(names, r.job.machines[m].Name)
		cpus += len(r.placement.Tasks[i]) * r.placement.CPUsPerTask
	}
	name := r.options.name
	if name == "" {
		name = filepath.Base(r.options.command[0])
	}
	r.record = steptable.Record{Number: r.number, Name: steptable.Printable(name), Began: time.Now().UnixNano(),
		Tasks: uint32(r.placement.Size), CPUs: uint32(max(cpus, 1)), Nodes: uint32(len(names)),
		NodeList: steptable.Printable(hostlist.Compress(names)), MinCPU: -1}
	r.log()
}

// log writes the record.
func (r *stepRun) log() {
	if r.claim != nil {
		_ = steptable.Log(r.job.log, &r.record)
	}
}

// addUsage adds what a task used.
func (r *stepRun) addUsage(machine int, task uint32, end step.TaskEnd) {
	if r.ended[task] {
		return
	}
	u, node := end.TaskUsage, r.machineName(machine)
	r.record.UserCPU += max(u.UserCPU, 0)
	r.record.SystemCPU += max(u.SystemCPU, 0)
	r.record.SumRSS += max(u.MaxRSS, 0)
	if u.MaxRSS > r.record.MaxRSS {
		r.record.MaxRSS, r.record.MaxRSSTask, r.record.MaxRSSNode = u.MaxRSS, task, node
	}
	if cpu := u.UserCPU + u.SystemCPU; r.record.MinCPU < 0 || cpu < r.record.MinCPU {
		r.record.MinCPU, r.record.MinCPUTask, r.record.MinCPUNode = cpu, task, node
	}
}

// finish writes down how the step ended.
func (r *stepRun) finish() {
	r.record.Ended, r.record.MinCPU = time.Now().UnixNano(), max(r.record.MinCPU, 0)
	for _, x := range r.exits {
		r.record.Code = max(r.record.Code, int32(x.Exit.Code))
		if x.Exit.Signal != 0 {
			r.record.Signal = int32(x.Exit.Signal)
		}
	}
	if r.record.Signal != 0 {
		r.record.Code = 0
	}
	r.log()
	for _, a := range r.attached {
		a.send(step.Frame{Kind: step.FrameDone, Data: []byte{byte(min(r.status, 255))}})
		a.close()
	}
	if r.listener != nil {
		r.listener.close()
	}
}
