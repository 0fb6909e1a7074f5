package api

import (
	"cmp"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxScaleChanges bounds the changes of the number of tasks that are told of.
const maxScaleChanges = 10

// autoscaleRow tells how the number of tasks of a service follows its load; nil where it
// does not.
func autoscaleRow(a *queue.AutoscaleStatus) *wire.AutoscaleStatus {
	if a == nil {
		return nil
	}
	p, d := &a.Policy, &a.Decision
	m := &wire.AutoscaleStatus{Min: uint32(p.Min), Max: uint32(p.Max), Source: p.Source.String(),
		What: validUTF8(cmp.Or(p.Metric, p.WaitingQueue, p.WaitingJob)), Target: p.Target, Wanted: uint32(d.Wanted),
		Average: d.Average(), Measured: uint32(d.Measured), Missing: uint32(d.Missing), Unready: uint32(d.Unready),
		Reason: validUTF8(d.Reason), Problem: validUTF8(a.Problem), At: a.At, Changed: validUTF8(a.Reason)}
	for _, c := range a.Changes[max(len(a.Changes)-maxScaleChanges, 0):] {
		m.Changes = append(m.Changes, &wire.ScaleChange{At: c.At, From: uint32(c.From), To: uint32(c.To)})
	}
	return m
}

// addScalePoints adds to a row what was measured and decided lately.
func addScalePoints(m *wire.JobStatus, st *queue.JobStatus) {
	if st.Service == nil || st.Service.Autoscale == nil || m.GetService().GetAutoscale() == nil {
		return
	}
	for _, p := range st.Service.Autoscale.Points {
		m.Service.Autoscale.Points = append(m.Service.Autoscale.Points, &wire.ScalePoint{At: p.At,
			Count: uint32(p.Count), Wanted: uint32(p.Wanted), Average: p.Average, Measured: uint32(p.Measured)})
	}
}

// autoscaleText says why a service has as many tasks as it has; "" where its user has
// said how many.
func autoscaleText(a *wire.AutoscaleStatus) string {
	switch {
	case a == nil:
		return ""
	case a.GetReason() == "":
		return "its number of tasks was not decided yet"
	case a.GetProblem() != "":
		return a.GetReason() + "; " + a.GetProblem()
	}
	return a.GetReason()
}

// sizeRow tells how the size of a service's tasks follows their use; nil where it does
// not.
func sizeRow(a *queue.SizeStatus) *wire.SizeStatus {
	if a == nil {
		return nil
	}
	p, d := &a.Policy, &a.Decision
	m := &wire.SizeStatus{Cpus: a.Size.CPU.Cores(), Memory: int64(a.Size.Memory), WantedCpus: a.Size.CPU.Cores(),
		WantedMemory: int64(a.Size.Memory), UsedCpus: d.CPU.Cores(), UsedMemory: int64(d.Memory),
		Samples: uint32(d.Samples), Reason: validUTF8(d.Reason), Problem: validUTF8(a.Problem), At: a.At}
	if a.At != 0 {
		m.WantedCpus, m.WantedMemory = d.Wanted.CPU.Cores(), int64(d.Wanted.Memory)
	}
	if p.SizesCPU() {
		m.MinCpus, m.MaxCpus = p.MinCPU.Cores(), p.MaxCPU.Cores()
	}
	if p.SizesMemory() {
		m.MinMemory, m.MaxMemory = int64(p.MinMemory), int64(p.MaxMemory)
	}
	return m
}

// sizeText says why the tasks of a service are as large as they are. It is empty where
// their user has said how large.
func sizeText(m *wire.SizeStatus) string {
	switch {
	case m == nil:
		return ""
	case m.GetReason() == "":
		return "its size was not decided yet"
	case m.GetProblem() != "":
		return m.GetReason() + "; " + m.GetProblem()
	}
	return m.GetReason()
}
