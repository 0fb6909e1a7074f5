package gpuwatch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/startd/slot"
)

// gpuAttempt is an attempt that runs on a machine with GPUs. Those without a share are
// looked at too: they may use none.
type gpuAttempt struct {
	shares    []gpu.SavedShare
	starter   int // the process that all of its descend from
	startedAt roost.BootTime
	stop      func(reason string) // called once, when it uses what it was not given
	stopped   bool

	busy   float64 // GPUs kept busy, when measured last
	memory roost.Bytes
	peak   roost.Bytes
}

// AddAttempt begins to measure the attempt on a claim, all of whose processes descend
// from its starter.
func (c *Monitor) AddAttempt(claim slot.ClaimID, shares []gpu.SavedShare, starter int, stop func(reason string)) {
	if !c.hasDevices() {
		return
	}
	c.mu.Lock()
	c.attempts[claim] = &gpuAttempt{shares: shares, starter: starter, startedAt: boottime.Now(), stop: stop}
	c.mu.Unlock()
	select {
	case c.attemptAdded <- struct{}{}:
	default:
	}
}

// RemoveAttempt ends the measurement of the attempt on a claim.
func (c *Monitor) RemoveAttempt(claim slot.ClaimID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.attempts, claim)
}

// AttemptUsage returns what the attempt on a claim uses of its GPUs. Busy is 1 for one
// GPU that always computes; memory is that of all together, now and at most.
func (c *Monitor) AttemptUsage(claim slot.ClaimID) (busy float64, memory, peak roost.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.attempts[claim]; t != nil {
		return t.busy, t.memory, t.peak
	}
	return 0, 0, 0
}

// gpuIdleInterval is how often the devices are measured while nothing runs. So the ad
// shows what others do on them.
const gpuIdleInterval = 10 * time.Second

// gpuEventTimeout bounds how long one question for news takes.
const gpuEventTimeout = time.Second

// Watch follows the devices until ctx ends.
func (c *Monitor) Watch(ctx context.Context) {
	if c.lister == nil {
		return
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			if events := c.lister.Wait(gpuEventTimeout); len(events) > 0 {
				c.onDriverEvent(events, boottime.Now())
			}
		}
	})
	watching.Go(func() { c.measureAll(ctx) })
	watching.Wait()
}

func (c *Monitor) measureAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.attemptAdded:
		case <-timer.C:
		}
		c.measure()
		c.mu.Lock()
		next := c.measureInterval
		if len(c.attempts) == 0 {
			next = gpuIdleInterval
		}
		c.mu.Unlock()
		timer.Reset(next)
	}
}

// measure asks every device who uses how much of it, and gives each attempt its part. It
// stops attempts that take what is another's.
func (c *Monitor) measure() {
	usage, err := c.lister.Usage()
	if err != nil {
		c.log.Warn("GPUs cannot be measured", "err", err)
		return
	}
	c.mu.Lock()
	clear(c.usage)
	for _, u := range usage {
		if slices.ContainsFunc(c.devices, func(d gpu.Device) bool { return d.UUID == u.UUID }) {
			c.usage[u.UUID] = u
		}
	}
	type stop struct {
		task   *gpuAttempt
		reason string
	}
	var stops []stop
	if len(c.attempts) > 0 {
		relatives := processChildren()
		for _, t := range c.attempts {
			if reason := c.recordUsage(t, descendants(relatives, t.starter)); reason != "" && !t.stopped {
				t.stopped = true
				stops = append(stops, stop{t, reason})
			}
		}
	}
	c.mu.Unlock()
	for _, s := range stops {
		s.task.stop(s.reason)
	}
}

// recordUsage takes in what the processes of one attempt use, and says what is wrong with
// it. The caller holds the lock.
func (c *Monitor) recordUsage(t *gpuAttempt, pids []int) (reason string) {
	t.busy, t.memory = 0, 0
	for _, d := range c.devices {
		memory, busy, largest := c.usage[d.UUID].UsageOf(pids)
		t.busy += busy
		t.memory += memory
		if reason != "" || memory == 0 {
			continue
		}
		i := slices.IndexFunc(t.shares, func(s gpu.SavedShare) bool { return s.UUID == d.UUID })
		switch {
		case i < 0:
			reason = fmt.Sprintf("process %d (%s) used %v of %s, which the task was not given: %s", largest.PID,
				commandName(largest.PID), memory, deviceName(d), remedy(t))
		case !t.shares[i].Whole && memory > t.shares[i].Memory:
			reason = fmt.Sprintf("used %v of %s and had asked for %v: process %d (%s) alone held %v. Ask for more "+
				"with gpu_memory, which covers what the CUDA runtime itself takes, or let the program use less",
				memory, deviceName(d), t.shares[i].Memory, largest.PID, commandName(largest.PID), largest.Memory)
		}
	}
	t.peak = max(t.peak, t.memory)
	return reason
}

func remedy(t *gpuAttempt) string {
	if len(t.shares) == 0 {
		return "ask for one with gpus = 1"
	}
	return "use those that CUDA_VISIBLE_DEVICES names"
}

// deviceName is a device for people.
func deviceName(d gpu.Device) string {
	if d.MIG != "" {
		return fmt.Sprintf("GPU %d (%s, %s)", d.Index, d.MIG, d.UUID)
	}
	return fmt.Sprintf("GPU %d (%s, %s)", d.Index, d.Model, d.UUID)
}

// FailureReason says what was wrong with the devices of an attempt that failed. One is
// sick, or reported an error while the attempt ran. Empty: nothing is known.
func (c *Monitor) FailureReason(claim slot.ClaimID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.attempts[claim]
	if t == nil {
		return ""
	}
	reason := ""
	for _, d := range c.devices {
		if !slices.ContainsFunc(t.shares, func(s gpu.SavedShare) bool { return s.UUID == d.UUID }) {
			continue
		}
		if !d.Health.OK {
			return fmt.Sprintf("%s is sick: %s", deviceName(d), d.Health.Reason)
		}
		if r, ok := c.last[d.UUID]; ok && r.at >= t.startedAt && reason == "" {
			reason = fmt.Sprintf("%s reported %v", deviceName(d), r.event)
		}
	}
	return reason
}

// processChildren maps each process of the machine to its children: one look at all,
// however many tasks run.
func processChildren() map[int][]int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := make(map[int][]int, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			of := parentOf(pid)
			children[of] = append(children[of], pid)
		}
	}
	return children
}

// parentOf returns the process's parent, 0 when it is gone. It is the second field of
// stat after the name in parentheses (proc(5)).
func parentOf(pid int) int {
	stat := readProcFile(pid, "stat")
	if fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(fields) > 1 {
		ppid, _ := strconv.Atoi(fields[1])
		return ppid
	}
	return 0
}

// descendants lists the descendants of a process, ascending.
func descendants(children map[int][]int, root int) []int {
	if root <= 1 {
		return nil
	}
	all := slices.Clone(children[root])
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	slices.Sort(all)
	return all
}

// commandName is what a process calls itself.
func commandName(pid int) string {
	return cmp.Or(strings.TrimSpace(readProcFile(pid, "comm")), "gone")
}

// What the ad says of GPUs beside what they are, which package gpu writes.
const (
	attrDevices = "GpuDevices" // a list of ads: how each device is and what it does
	attrDriver  = "GpuDriver"
	attrCUDA    = "CudaVersion"
)

// DescribeStatic writes into the machine's ad what does not change.
func (c *Monitor) DescribeStatic(ad *classad.Ad) {
	if !c.hasDevices() {
		return
	}
	driver, cuda := c.lister.Driver()
	for _, a := range [][2]string{{attrDriver, driver}, {attrCUDA, cuda}} {
		if a[1] != "" {
			ad.SetString(a[0], a[1])
		}
	}
	if c.config.Exclusive {
		ad.SetExpr(roost.AttrRequirements, roost.AttrStart+" && (TARGET."+roost.AttrRequestGpuMem+
			" =?= undefined || TARGET."+roost.AttrRequestGpuMem+" == 0)")
	}
}

// DescribeUsage writes into the machine's ad how the devices are and what they do. What
// is not known is left out.
func (c *Monitor) DescribeUsage(ad *classad.Ad) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.devices) == 0 {
		return
	}
	list := make([]classad.Value, 0, len(c.devices))
	for _, d := range c.devices {
		a := classad.New()
		a.SetInt("Index", int64(d.Index))
		a.SetString("UUID", d.UUID)
		a.SetString("Model", d.Model)
		if d.MIG != "" {
			a.SetString("MIG", d.MIG)
		}
		a.SetInt("Memory", int64(d.Memory/roost.MiB))
		a.SetBool("Healthy", d.Health.OK)
		if d.Health.Reason != "" {
			a.SetString("Why", d.Health.Reason)
		}
		u, measured := c.usage[d.UUID]
		if measured {
			c.advertisedUsage[d.UUID] = u
			if u.Memory >= 0 {
				a.SetInt("MemoryUsed", int64(u.Memory/roost.MiB))
			}
			if u.BusyFraction >= 0 {
				a.SetReal("Busy", u.BusyFraction)
			}
			if u.Temperature >= 0 {
				a.SetInt("Temperature", int64(u.Temperature))
			}
			if u.Power >= 0 {
				a.SetReal("Power", u.Power)
			}
		}
		list = append(list, classad.AdOf(a))
	}
	ad.SetValue(attrDevices, classad.ListValue(list...))
}

// How far the usage of a device must be from what the ad says before that is worth a new
// ad.
const (
	memoryNewsStep      = 64 * roost.MiB
	busyNewsStep        = 0.1
	temperatureNewsStep = 5
)

// IsAdStale reports whether the devices do something else than the last ad says.
func (c *Monitor) IsAdStale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uuid, u := range c.usage {
		s, ok := c.advertisedUsage[uuid]
		if !ok || max(u.Memory-s.Memory, s.Memory-u.Memory) >= memoryNewsStep ||
			math.Abs(u.BusyFraction-s.BusyFraction) >= busyNewsStep ||
			max(u.Temperature-s.Temperature, s.Temperature-u.Temperature) >= temperatureNewsStep {
			return true
		}
	}
	return false
}

func readProcFile(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text)
}
