package startd

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// How often running attempts are measured, how many samples lie between two reports, and how many attempts a report tells of at most: those
// that it leaves out are the first in the next.
const (
	sampleEvery = 2 * time.Second
	reportEvery = 3
	maxReported = 2000
)

// usageNews is what a report tells a schedd.
type usageNews struct {
	schedd string
	report *wire.UsageReport
}

// watchUsage measures all attempts until ctx ends, in one goroutine: the cost is in proportion to what runs.
func (m *machine) watchUsage(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range m.meters.list() {
			t.sample()
		}
		m.tellUses()
		cores, _ := m.meters.totals()
		m.today.gave(time.Now(), cores*sampleEvery.Seconds())
		if n%reportEvery == 0 {
			m.reportUsage(time.Now())
		}
	}
}

// reportUsage tells each schedd what has changed of its attempts.
func (m *machine) reportUsage(now time.Time) {
	reports := map[string]*wire.UsageReport{}
	for _, t := range m.meters.list() {
		r := reports[t.schedd]
		if len(r.GetAttempts()) >= maxReported {
			continue
		}
		if news := t.news(now); news != nil {
			if r == nil {
				r = &wire.UsageReport{}
				reports[t.schedd] = r
			}
			r.Attempts = append(r.Attempts, news)
		}
	}
	for schedd, r := range reports {
		m.post(usageNews{schedd, r})
	}
}

// measureFrom begins to measure an attempt. It is called before the starter is told to run it, and after a restart for one that runs.
func (h *hand) measureFrom(a *attempt, from origin) {
	m := &meter{
		id: a.id, schedd: h.file.Schedd, claim: h.id, group: h.group, origin: from, gpu: h.m.gpuUsage,
		box: h.box, cred: h.cred, scratch: a.record.Scratch, temp: a.record.Base, io: a.record.IO, disk: h.file.Resources.Disk,
		bounds: a.record.Bounds, measureAt: time.Now().Add(diskEvery),
	}
	if h.starter != nil {
		m.starter = h.starter.PID()
	}
	h.m.meters.put(m)
}

// origin is where the measurement of an attempt that is about to start counts from.
func (h *hand) origin() origin {
	o := origin{Began: boottime()}
	if h.group != nil {
		o.Group, _ = h.group.Usage()
	}
	return o
}

// account puts what the attempt has used into the news of its end, and says so if that is what has ended it.
func (h *hand) account(a *attempt, status *wire.ExitStatus) {
	m := h.m.meters.take(h.id, a.id)
	if m == nil {
		return
	}
	m.sample()
	u := m.last
	if status.Wall > 0 {
		u.Wall = status.Wall
	}
	// The starter has the times of all that it waited for, also where nothing else is counted.
	u.UserCpu, u.SystemCpu = max(u.UserCpu, status.UserCpu), max(u.SystemCpu, status.SystemCpu)
	if u.PeakMemory == 0 {
		u.PeakMemory = status.MaxRss // it has ended before it was seen
	}
	m.verdict(status)
	u.Memory, u.Processes, u.Frozen, u.Gpu, u.GpuMemory = 0, 0, false, 0, 0
	status.Usage = u
}

// describeUsage says in the machine's ad what its tasks use.
func (m *machine) describeUsage(ad *classad.Ad) {
	cores, memory := m.meters.totals()
	ad.SetReal(roost.AttrTasksCpu, float64(int64(cores*100+0.5))/100)
	ad.SetInt(roost.AttrTasksMemory, memory/int64(roost.MiB))
}

// gpuUsage is what the attempt on a claim does with its GPUs: how many it keeps busy, and bytes of their memory.
func (m *machine) gpuUsage(claim slot.ClaimID) (busy float64, memory, peak int64) {
	b, now, most := m.gpus.used(claim)
	return b, int64(now), int64(most)
}
