package startd

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// How often running attempts are measured, how many samples lie between two reports, and
// how many attempts a report tells of at most: those that it leaves out are the first in
// the next.
const (
	usageSampleInterval = 2 * time.Second
	samplesPerReport    = 3
	maxReported         = 2000
)

// usageReport is what a report tells a schedd.
type usageReport struct {
	schedd string
	report *wire.UsageReport
}

// watchUsage measures all attempts until ctx ends, in one goroutine: the cost is in
// proportion to what runs.
func (m *claimHost) watchUsage(ctx context.Context) {
	tick := time.NewTicker(usageSampleInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range m.meters.sortedMeters() {
			t.sample()
		}
		m.sampleUsage()
		cores, _ := m.meters.totals()
		m.stats.addCPUTime(time.Now(), cores*usageSampleInterval.Seconds())
		if n%samplesPerReport == 0 {
			m.reportUsage(time.Now())
		}
	}
}

// reportUsage tells each schedd what has changed of its attempts.
func (m *claimHost) reportUsage(now time.Time) {
	reports := map[string]*wire.UsageReport{}
	for _, t := range m.meters.sortedMeters() {
		r := reports[t.schedd]
		if len(r.GetAttempts()) >= maxReported {
			continue
		}
		if update := t.unsentUsage(now); update != nil {
			if r == nil {
				r = &wire.UsageReport{}
				reports[t.schedd] = r
			}
			r.Attempts = append(r.Attempts, update)
		}
	}
	for schedd, r := range reports {
		m.postEvent(usageReport{schedd, r})
	}
}

// measureFrom begins to measure an attempt. It is called before the starter is told to
// run it, and after a restart for one that runs.
func (h *claimRunner) measureFrom(a *claimAttempt, from usageBaseline) {
	m := &attemptMeter{
		id: a.id, schedd: h.file.Schedd, claim: h.id, group: h.group, origin: from, gpu: h.host.gpuUsage,
		runnerQueue: h.queue, cred: h.cred, scratch: a.record.Scratch, temp: a.record.Base, io: a.record.IO,
		disk:   h.file.Resources.Disk,
		bounds: a.record.Bounds, measureAt: time.Now().Add(diskCheckInterval),
	}
	if h.starter != nil {
		m.starter = h.starter.PID()
	}
	h.host.meters.add(m)
}

// newUsageBaseline is where the measurement of an attempt that is about to start counts
// from.
func (h *claimRunner) newUsageBaseline() usageBaseline {
	o := usageBaseline{Began: boottime.Now()}
	if h.group != nil {
		o.Group, _ = h.group.Usage()
	}
	return o
}

// addFinalUsage puts what the attempt has used into the news of its end, and says so if
// that is what has ended it.
func (h *claimRunner) addFinalUsage(a *claimAttempt, status *wire.ExitStatus) {
	m := h.host.meters.remove(h.id, a.id)
	if m == nil {
		return
	}
	m.sample()
	u := m.last
	if status.Wall > 0 {
		u.Wall = status.Wall
	}
	// The starter has the times of all that it waited for, also where nothing else is
	// counted.
	u.UserCpu, u.SystemCpu = max(u.UserCpu, status.UserCpu), max(u.SystemCpu, status.SystemCpu)
	if u.PeakMemory == 0 {
		u.PeakMemory = status.MaxRss // it has ended before it was seen
	}
	m.attributeFailure(status)
	u.Memory, u.Processes, u.Frozen, u.Gpu, u.GpuMemory = 0, 0, false, 0, 0
	status.Usage = u
}

// describeUsage says in the machine's ad what its tasks use.
func (m *claimHost) describeUsage(ad *classad.Ad) {
	cores, memory := m.meters.totals()
	ad.SetReal(roost.AttrTasksCpu, float64(int64(cores*100+0.5))/100)
	ad.SetInt(roost.AttrTasksMemory, memory/int64(roost.MiB))
}

// gpuUsage is what the attempt on a claim does with its GPUs: how many it keeps busy, and
// bytes of their memory.
func (m *claimHost) gpuUsage(claim slot.ClaimID) (busy float64, memory, peak int64) {
	b, now, most := m.gpus.attemptUsage(claim)
	return b, int64(now), int64(most)
}
