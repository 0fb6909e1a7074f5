// Package workload makes a simulated pool (package pool) from real data: a checkpoint of
// a live cell, a description of a mix of jobs, or a log of jobs of another system. It is
// pure: the same file and seed give the same pool.
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
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/trace"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/schedd/queue"
)

// FromMix draws the jobs of a mix. A job's submission times, run times and owners depend
// only on the seed and its name, so other jobs can be added without changing them.
func FromMix(m *submit.SimPool, seed uint64) pool.SimulationConfig {
	c := pool.SimulationConfig{Seed: seed, Managers: m.Managers, Schedds: m.Schedds}
	for _, k := range m.Machines {
		for i := range k.Count {
			name := k.Name
			if k.Count > 1 {
				name = fmt.Sprintf("%s%d", k.Name, i)
			}
			one := mixMachine(name, k.Resources)
			one.OwnerPolicy, one.OwnerSchedule = k.Owner, pool.OwnerSchedule(k.Schedule)
			c.Machines = append(c.Machines, one)
		}
	}
	for i := range m.Loads {
		l := &m.Loads[i]
		r := eventloop.NewRand(seed, nameHash(l.Job.Name))
		at := l.Start
		for n := range l.Jobs {
			if n > 0 && l.Interval > 0 {
				at += r.Exponential(l.Interval)
			}
			if l.End > 0 && at > l.End {
				break
			}
			c.Jobs = append(c.Jobs, mixJob(l, at, n, r, m.Schedds))
		}
	}
	slices.SortStableFunc(c.Jobs, func(a, b pool.JobConfig) int { return cmp.Compare(a.At, b.At) })
	return c
}

func mixJob(l *submit.SimLoad, at time.Duration, n int, r *eventloop.SplitMix, schedds int) pool.JobConfig {
	j := pool.JobConfig{At: at, Schedd: n % schedds, Owner: "user", Spec: submitSpec(&l.Job)}
	if l.Users > 1 {
		j.Owner = fmt.Sprintf("user%d", n%l.Users)
	}
	each := j.Spec.Count
	if l.RunTimeSigma == 0 {
		each = 1
	}
	if _, ok := j.Spec.Ad.Sub(roost.AttrService); ok {
		addService(&j, l.RunTime)
	}
	for range each {
		run := l.RunTime
		if l.RunTimeSigma > 0 {
			run = r.LogNormal(l.RunTime, l.RunTimeSigma)
		}
		j.Runtimes = append(j.Runtimes, max(run, time.Millisecond))
	}
	return j
}

// addService makes a job a service, whose tasks run until they are ended. One with checks
// is ready after some time. No ports are simulated, and no secrets.
func addService(j *pool.JobConfig, readyWithin time.Duration) {
	j.Service = &audit.ServiceTerms{}
	j.Spec.Ad.Delete(roost.AttrPorts)
	j.Spec.Ad.Delete(roost.AttrSecrets)
	if _, ok := j.Spec.Ad.Lookup(roost.AttrChecks); ok {
		j.Health = &pool.HealthModel{Change: max(readyWithin, 2*time.Millisecond), Ready: time.Second}
	}
}

// submitSpec returns a job as it is submitted. Dependencies on other jobs of the file are
// left out, because each submission has one job.
func submitSpec(j *submit.Job) queue.SubmitSpec {
	s := queue.SubmitSpec{Ad: j.Ad.Copy(), Count: j.Count}
	s.Ad.Delete(roost.AttrDependsOn)
	for _, c := range j.Columns {
		s.Columns = append(s.Columns, queue.TaskColumn{Name: c.Name, Values: c.Values})
	}
	return s
}

// mixMachine returns a machine of a kind.
func mixMachine(name string, r roost.Resources) pool.MachineConfig {
	m := pool.MachineConfig{Name: name, Resources: r}
	for i := range r.GPUs {
		m.Devices = append(m.Devices, gpu.Device{
			UUID: fmt.Sprintf("GPU-%s-%d", name, i), Model: "simulated", Index: i, Minor: i, NUMANode: -1,
			Memory: cmp.Or(r.GPUMemory, 16*roost.GiB), Health: gpu.DeviceHealth{OK: true},
		})
	}
	return m
}

// FromLog returns a pool with the jobs of a log. Its machines have equal parts of the
// log's processors. A job larger than a machine becomes a gang, each task with a whole
// machine or the rest. left counts the jobs left out: those without run time or size, and
// those larger than the pool.
func FromLog(log *trace.Log, processors int64, machines int,
	seed uint64) (c pool.SimulationConfig, left int, err error) {
	if processors < 1 || processors > math.MaxInt32 || machines < 1 || int64(machines) > processors {
		return c, 0, fmt.Errorf("%w: %d processors on %d machines", roost.Invalid, processors, machines)
	}
	each := processors / int64(machines)
	c = pool.SimulationConfig{Seed: seed, Managers: 1, Schedds: 1}
	for i := range machines {
		r := roost.Resources{CPU: roost.MilliCPU(each) * 1000, Memory: roost.Bytes(each) * roost.GiB,
			Disk: roost.Bytes(each) * roost.GiB}
		c.Machines = append(c.Machines, mixMachine(fmt.Sprintf("node%d", i), r))
	}
	for i := range log.Jobs {
		j := &log.Jobs[i]
		procs, run := j.Processors, j.RunTime
		if procs <= 0 {
			procs = j.RequestedProcessors
		}
		if j.RequestedTime > 0 {
			run = min(run, j.RequestedTime)
		}
		if procs <= 0 || procs > each*int64(machines) || run <= 0 {
			left++
			continue
		}
		c.Jobs = append(c.Jobs, logJob(j, procs, each, run))
	}
	slices.SortStableFunc(c.Jobs, func(a, b pool.JobConfig) int { return cmp.Compare(a.At, b.At) })
	return c, left, nil
}

// logJob returns the job of a log entry.
func logJob(j *trace.Job, procs, each, run int64) pool.JobConfig {
	ad := classad.New()
	ad.SetString(roost.AttrJobName, fmt.Sprintf("%d", j.ID))
	ad.SetInt(roost.AttrRequestMemory, 1)
	if j.RequestedTime > 0 {
		// one second more, so that the job is not killed at its own end
		ad.SetInt(roost.AttrWalltime, j.RequestedTime+1)
	}
	tasks := (procs + each - 1) / each
	ad.SetInt(roost.AttrRequestCpus, (procs+tasks-1)/tasks)
	if tasks > 1 {
		ad.SetInt(roost.AttrGangSize, tasks)
	}
	return pool.JobConfig{
		At: time.Duration(max(j.Submit, 0)) * time.Second, Owner: fmt.Sprintf("user%d", j.User),
		Spec:     queue.SubmitSpec{Ad: ad, Count: int(tasks)},
		Runtimes: []time.Duration{time.Duration(run) * time.Second},
	}
}

// nameHash returns the FNV-1a hash of a name.
func nameHash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}
