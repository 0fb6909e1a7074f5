package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// matchTargets has the targets of the cost of plans on one core, by number of machines
// and of requests.
var matchTargets = map[[2]int]struct{ scratch, change time.Duration }{
	{10_000, 100}:   {time.Second, time.Millisecond},
	{100_000, 1000}: {15 * time.Second, 0},
}

const (
	bytesTarget  = 2048 // bytes of memory for each machine
	changeRounds = 100  // of one machine each; the result is their median
)

// measureMatching measures plans for cells of many machines, with ten tasks for each. One
// plan starts from scratch; others follow when everything that fits is placed and one
// machine has changed. Times are CPU times on one core, including garbage collection.
func (b *poolBencher) measureMatching() error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, machines := range []int{1000, 10_000, 100_000} {
		for _, classes := range []int{1, 100, 1000} {
			if err := b.measureMatchCell(machines, classes, 10*machines); err != nil {
				return err
			}
			if b.ctx.Err() != nil {
				return b.ctx.Err()
			}
		}
	}
	return nil
}

func (b *poolBencher) measureMatchCell(machines, classes, tasks int) error {
	what, aims := fmt.Sprintf("%d machines × %d classes, %d tasks", machines, classes, tasks),
		matchTargets[[2]int{machines, classes}]
	before := heapBytes()
	s, common := &match.Snapshot{Now: time.Unix(1, 0)}, classad.NewPool()
	for i := range machines {
		m, err := matchMachine(common, i, 1)
		if err != nil {
			return err
		}
		s.Machines = append(s.Machines, m)
	}
	matcher := match.NewMatcher()
	for i := range classes {
		r, err := matchRequest(i, tasks/classes)
		if err != nil {
			return err
		}
		s.Requests = append(s.Requests, r)
	}
	began := processCPUTime()
	plan := matcher.Plan(s)
	took, units := processCPUTime()-began, 0
	for _, g := range plan.Grants {
		units += g.Units
	}
	const text = "%v, %d placed, %.0f placements/s"
	values := []any{took.Round(time.Millisecond / 10), units, float64(units) / took.Seconds()}
	if aims.scratch > 0 {
		b.addAimedRow(what+": from scratch", took <= aims.scratch, aims.scratch.String(), text, values...)
	} else {
		b.addRow(what+": from scratch", text, values...)
	}
	took, err := matchChange(s, matcher, plan)
	if err != nil {
		return err
	}
	if aims.change > 0 {
		b.addAimedRow(what+": after one change", took <= aims.change, aims.change.String(), "%v", took)
	} else {
		b.addRow(what+": after one change", "%v", took)
	}
	plan = match.Plan{}
	if classes == 1 {
		size := (heapBytes() - before) / int64(machines)
		b.addAimedRow(fmt.Sprintf("%d machines: memory for each", machines), size <= bytesTarget,
			fmt.Sprint(bytesTarget, " B"), "%d B", size)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(matcher)
	return nil
}

// matchChange treats what was placed as running, and then changes one machine again and
// again.
func matchChange(s *match.Snapshot, matcher *match.Matcher, plan match.Plan) (time.Duration, error) {
	s.Pending = map[string][]match.PendingGrant{}
	at := map[string]int{}
	for i, m := range s.Machines {
		at[m.Name] = i
	}
	left := map[*match.Machine]roost.Resources{}
	for _, g := range plan.Grants {
		free, ok := left[g.Machine]
		if !ok {
			free = g.Machine.Free
		}
		r := g.Request.Class.Resources
		left[g.Machine] = free.Sub(roost.Resources{CPU: r.CPU * roost.MilliCPU(g.Units),
			Memory: r.Memory * roost.Bytes(g.Units)})
		g.Request.Wanted -= g.Units
	}
	for m, free := range left {
		full := match.NewMachine(m.Name, 1, 2, m.Ad)
		full.Free = free
		s.Machines[at[m.Name]] = full
	}
	matcher.Plan(s)
	var took gauge.DurationSamples
	for i := range changeRounds {
		old := s.Machines[i]
		s.Machines[i] = match.NewMachine(old.Name, 1, uint64(3+i), old.Ad)
		s.Machines[i].Free = old.Free
		s.Now = s.Now.Add(time.Millisecond)
		began := time.Now()
		matcher.Plan(s)
		took = append(took, time.Since(began))
	}
	return took.Percentile(50), nil
}

// matchMachine returns a machine of one of ten kinds.
func matchMachine(common *classad.InternPool, i int, sequence uint64) (*match.Machine, error) {
	ad, err := classad.Parse(fmt.Sprintf(`[
		MyType = "Machine"; Name = "node%06d"; Machine = "node%06d.cluster.example"; MyAddress = "10.%d.%d.%d:9618"; RoostVersion = "1.0";
		Arch = "X86_64"; OpSys = "LINUX"; Generation = %d; Rack = "r%d"; State = "Unclaimed"; LoadAvg = %d.5; HasCheckpoint = true; CgroupVersion = 2;
		Cpus = %d; TotalCpus = 16; Memory = 65536; TotalMemory = 65536; Disk = 1073741824; TotalDisk = 1073741824; Gpus = 0; TotalGpus = 0;
		NumClaims = %d; NumRunning = %d; FileSystemDomain = "cluster"; DaemonStartTime = 1700000000; UpdateSequenceNumber = %d;
		Start = TARGET.RequestCpus <= TotalCpus; Requirements = Start]`,
		i, i, i>>16, i>>8&255, i&255, i%10, i/40, i%100, 16-i%4, i%4, i%4, sequence))
	if err != nil {
		return nil, err
	}
	m := match.NewMachine(fmt.Sprintf("node%06d", i), 1, sequence, ad)
	common.Intern(ad) // as the negotiator does it
	return m, nil
}

// matchRequest returns a request of one of ten users.
func matchRequest(i, tasks int) (*match.Request, error) {
	who := fairshare.Submitter{Owner: fmt.Sprintf("user%d", i%10)}
	r := roost.Resources{CPU: roost.MilliCPU(i%4+1) * 1000, Memory: roost.Bytes(i%7+1) * roost.GiB}
	class, err := match.NewClass(fmt.Sprintf(
		`[Requirements = TARGET.Arch == "X86_64" && TARGET.Generation >= %d; Rank = TARGET.Generation]`, i%5,
	), who, roost.BatchBand, r)
	if err != nil {
		return nil, err
	}
	return &match.Request{Key: match.RequestKey{Schedd: "s", ID: uint64(i)}, Submitter: who, Band: roost.BatchBand,
		Oldest: int64(i), Wanted: tasks, Class: class}, nil
}

// processCPUTime returns the CPU time of this process.
func processCPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapBytes returns the bytes of the heap in use.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
