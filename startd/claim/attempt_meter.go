package claim

import (
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/slurm/steptable"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
)

// measureFrom begins to measure an attempt.
func (h *Runner) measureFrom(a *Attempt, from meter.Baseline) {
	m := meter.Attempt{
		ID: a.id, Schedd: h.file.Schedd, Claim: h.id, Group: h.group, Baseline: from, Limits: a.record.Bounds,
		Credential: h.cred, Scratch: a.record.Scratch, Temp: a.record.Base, IO: a.record.IO,
		Disk: h.file.Resources.Disk, Band: h.file.About.Band, Logs: h.logBounds(a),
		GPU: func() (busy float64, memory, peak roost.Bytes) { return h.machine.gpus.AttemptUsage(h.id) },
		End: func(cause wire.Cause, reason string) {
			h.queue.Put(VacateCmd{ID: a.id, Cause: cause, Reason: reason})
		},
	}
	if a.record.Reaches {
		m.Steps = stepReader(filepath.Join(a.record.IO, StepLogName))
	}
	if h.starter != nil {
		m.Starter = h.starter.PID()
	}
	h.machine.meters.Start(m)
}

// stepReader reads the log of the steps of an attempt.
func stepReader(path string) func(all bool) []*wire.StepRecord {
	log := &steptable.LogReader{Path: path}
	return func(all bool) (list []*wire.StepRecord) {
		records := log.Changed()
		if all {
			records = log.All()
		}
		for i := range records {
			list = append(list, wireStep(&records[i]))
		}
		return list
	}
}

func wireStep(r *steptable.Record) *wire.StepRecord {
	return &wire.StepRecord{Number: r.Number, Name: r.Name, Began: r.Began, Ended: r.Ended, Code: r.Code,
		Signal: r.Signal, End: r.End, Tasks: r.Tasks, Cpus: r.CPUs, Nodes: r.Nodes, NodeList: r.NodeList,
		UserCpu: r.UserCPU, SystemCpu: r.SystemCPU, MaxRss: r.MaxRSS, MaxRssTask: r.MaxRSSTask,
		MaxRssNode: r.MaxRSSNode, MinCpu: r.MinCPU, MinCpuTask: r.MinCPUTask, MinCpuNode: r.MinCPUNode,
		SumRss: r.SumRSS}
}
