package meter

import (
	"context"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/reclaim"
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

// Host hears what the meters measure. Its methods are called by one goroutine and may
// wait until there is room for what they bring.
type Host interface {
	// OnUsageSample hears, with every measurement, what all tasks use.
	OnUsageSample(Sample)
	// OnCPUTime hears how many core seconds tasks had since the last measurement.
	OnCPUTime(seconds float64)
	// OnUsageReport has a schedd told what has changed of its attempts.
	OnUsageReport(schedd string, report *wire.UsageReport)
}

// Sample is what each task uses now, and what memory the machine has left.
type Sample struct {
	Usage    map[slot.ClaimID]reclaim.ResourceAmount
	Pressure slot.MemoryPressure
}

// WatchUsage measures all attempts until ctx ends, in one goroutine: the cost is in
// proportion to what runs.
func (s *Meters) WatchUsage(ctx context.Context, host Host) {
	tick := time.NewTicker(usageSampleInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range s.sortedMeters() {
			t.sample()
		}
		s.sampleUsage(host)
		cores, _ := s.totals()
		host.OnCPUTime(cores * usageSampleInterval.Seconds())
		s.reportUsage(host, time.Now(), n%samplesPerReport == 0)
	}
}

// reportUsage tells each schedd what has changed of its attempts. Between two reports
// that is which of their steps have begun or ended.
func (s *Meters) reportUsage(host Host, now time.Time, isReport bool) {
	reports := map[string]*wire.UsageReport{}
	for _, t := range s.sortedMeters() {
		r := reports[t.Schedd]
		if len(r.GetAttempts()) >= maxReported {
			continue
		}
		if update := t.unsentUsage(now, isReport); update != nil {
			if r == nil {
				r = &wire.UsageReport{}
				reports[t.Schedd] = r
			}
			r.Attempts = append(r.Attempts, update)
		}
	}
	for schedd, r := range reports {
		host.OnUsageReport(schedd, r)
	}
}

// sampleUsage has the claim table know what tasks use. Where nothing is lent, and
// nothing was by a startd before this one, they learn that too: it costs little.
func (s *Meters) sampleUsage(host Host) {
	update := Sample{Usage: make(map[slot.ClaimID]reclaim.ResourceAmount),
		Pressure: availableMemory("/proc/meminfo")}
	for _, t := range s.sortedMeters() {
		t.mu.Lock()
		update.Usage[t.Claim] = reclaim.ResourceAmount{CPU: roost.MilliCPU(math.Ceil(t.rate * 1000)),
			Memory: roost.Bytes(t.last.GetMemory())}
		t.mu.Unlock()
	}
	host.OnUsageSample(update)
}

// availableMemory is what the kernel could give without pushing anybody out (proc(5),
// MemAvailable). What cannot be read is not known.
func availableMemory(path string) (p slot.MemoryPressure) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "MemTotal":
			p.Total = roost.Bytes(n) * roost.KiB
		case "MemAvailable":
			p.Available = roost.Bytes(n) * roost.KiB
		}
	}
	return p
}
