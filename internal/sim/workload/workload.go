// Package workload makes a simulated pool (package pool) of what people have: a checkpoint of a live cell, a mix of jobs that they have written down, or a log of jobs that
// others have run.
// It is pure: the same file and the same seed are the same pool.
package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/swf"
	"github.com/roost-batch/roost/schedd/queue"
)

// FromMix draws the jobs of a mix. What is submitted when, for how long its tasks run, and by whom depends on the seed and the job's name alone: another load beside
// it changes nothing.
func FromMix(m *submit.Mix, seed uint64) pool.Config {
	c := pool.Config{Seed: seed, Managers: m.Managers, Schedds: m.Schedds}
	for _, k := range m.Machines {
		for i := range k.Count {
			name := k.Name
			if k.Count > 1 {
				name = fmt.Sprintf("%s%d", k.Name, i)
			}
			one := machine(name, k.Resources)
			one.Owner, one.Visits = k.Owner, pool.Visits(k.Visits)
			c.Machines = append(c.Machines, one)
		}
	}
	for i := range m.Loads {
		l := &m.Loads[i]
		r := kernel.NewRand(seed, hash(l.Job.Name))
		at := l.From
		for n := range l.Jobs {
			if n > 0 && l.Every > 0 {
				at += r.Exponential(l.Every)
			}
			if l.Until > 0 && at > l.Until {
				break
			}
			c.Jobs = append(c.Jobs, job(l, at, n, r, m.Schedds))
		}
	}
	slices.SortStableFunc(c.Jobs, func(a, b pool.Job) int { return cmp.Compare(a.At, b.At) })
	return c
}

func job(l *submit.Load, at time.Duration, n int, r *kernel.Rand, schedds int) pool.Job {
	j := pool.Job{At: at, Schedd: n % schedds, Owner: "user", Spec: spec(&l.Job)}
	if l.Users > 1 {
		j.Owner = fmt.Sprintf("user%d", n%l.Users)
	}
	each := j.Spec.Count
	if l.Spread == 0 {
		each = 1
	}
	for range each {
		run := l.Run
		if l.Spread > 0 {
			run = r.LogNormal(l.Run, l.Spread)
		}
		j.Run = append(j.Run, max(run, time.Millisecond))
	}
	return j
}

// spec is a job as it is submitted. Those that depend on others of the file come without that: each submission is of one job.
func spec(j *submit.Job) queue.Spec {
	s := queue.Spec{Ad: j.Ad.Copy(), Count: j.Count}
	s.Ad.Delete(roost.AttrDependsOn)
	for _, c := range j.Columns {
		s.Columns = append(s.Columns, queue.Column{Name: c.Name, Values: c.Values})
	}
	return s
}

// machine is one of a kind.
func machine(name string, r roost.Resources) pool.Machine {
	m := pool.Machine{Name: name, Resources: r}
	for i := range r.GPUs {
		m.Devices = append(m.Devices, gpu.Device{
			UUID: fmt.Sprintf("GPU-%s-%d", name, i), Model: "simulated", Index: i, Minor: i, NUMA: -1, Memory: cmp.Or(r.GPUMemory, 16*roost.GiB), Health: gpu.Health{OK: true},
		})
	}
	return m
}

// FromLog makes of a log the jobs of a pool of so many machines, which have its processors together, in even parts. A job that is larger than a machine is a gang
// of tasks, each of which has a whole one, or what is left. It returns how many jobs were left out: those without a length or a size, and those larger than the pool.
func FromLog(log *swf.Log, processors int64, machines int, seed uint64) (c pool.Config, left int, err error) {
	if processors < 1 || processors > math.MaxInt32 || machines < 1 || int64(machines) > processors {
		return c, 0, fmt.Errorf("%w: %d processors on %d machines", roost.Invalid, processors, machines)
	}
	each := processors / int64(machines)
	c = pool.Config{Seed: seed, Managers: 1, Schedds: 1}
	for i := range machines {
		r := roost.Resources{CPU: roost.MilliCPU(each) * 1000, Memory: roost.Bytes(each) * roost.GiB, Disk: roost.Bytes(each) * roost.GiB}
		c.Machines = append(c.Machines, machine(fmt.Sprintf("node%d", i), r))
	}
	for i := range log.Jobs {
		j := &log.Jobs[i]
		procs, run := j.Procs, j.Run
		if procs <= 0 {
			procs = j.Requested
		}
		if j.Request > 0 {
			run = min(run, j.Request)
		}
		if procs <= 0 || procs > each*int64(machines) || run <= 0 {
			left++
			continue
		}
		c.Jobs = append(c.Jobs, ofLog(j, procs, each, run))
	}
	slices.SortStableFunc(c.Jobs, func(a, b pool.Job) int { return cmp.Compare(a.At, b.At) })
	return c, left, nil
}

// ofLog is one job of a log.
func ofLog(j *swf.Job, procs, each, run int64) pool.Job {
	ad := classad.New()
	ad.SetString(roost.AttrJobName, fmt.Sprintf("%d", j.ID))
	ad.SetInt(roost.AttrRequestMemory, 1)
	if j.Request > 0 {
		ad.SetInt(roost.AttrWalltime, j.Request+1) // it is not ended for the second in which it would have ended by itself
	}
	tasks := (procs + each - 1) / each
	ad.SetInt(roost.AttrRequestCpus, (procs+tasks-1)/tasks)
	if tasks > 1 {
		ad.SetInt(roost.AttrGangSize, tasks)
	}
	return pool.Job{
		At: time.Duration(max(j.Submit, 0)) * time.Second, Owner: fmt.Sprintf("user%d", j.User), Spec: queue.Spec{Ad: ad, Count: int(tasks)},
		Run: []time.Duration{time.Duration(run) * time.Second},
	}
}

// hash is FNV-1a of a name.
func hash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}
