package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/schedd/queue"
)

// addRunningJobs makes jobs of the running tasks.
func (x *checkpointCell) addRunningJobs() error {
	endless, reclaimed, lost := 0, 0, 0
	for _, t := range x.simulation.Tasks() {
		at, ok := x.machine[t.Machine]
		if !ok {
			lost++
			continue
		}
		name := t.Claim.JobName()
		_, host, _ := strings.Cut(name, ".")
		of := taskSequence{job: name, key: match.RequestKey{Schedd: host}}
		if t.Ask != nil {
			of.key = t.Ask.Key
		} else {
			of.resources = fmt.Sprint(t.Claim.Resources, t.Claim.AppClass(), t.Claim.Band, t.Claim.Submitter)
		}
		since := time.Duration(0)
		if t.Claim.TaskStarted > 0 {
			since = max(time.Duration(x.from.Now.Unix()-t.Claim.TaskStarted)*time.Second, 0)
		}
		left := x.boundedRuntime(t.Remaining)
		all := min(since+left, pool.ForEver)
		if left == 0 {
			endless++
			left, all = pool.ForEver, pool.ForEver
		}
		if x.tasks[match.RequestKey{Schedd: of.key.Schedd,
			ID: max(of.key.ID, x.request[name])}]++; t.Claim.Placement.Reclaimed ||
			len(t.Claim.Placement.Parts)+len(t.Claim.Placement.Shares) == 0 {
			reclaimed++
			of.resources += " waits"
		}
		i, known := x.runningJob[of]
		if !known {
			i, x.runningJob[of] = len(x.config.Jobs), len(x.config.Jobs)
			j, err := x.job(t, name)
			if err != nil {
				return err
			}
			x.config.Jobs = append(x.config.Jobs, j)
		}
		j := &x.config.Jobs[i]
		j.Spec.Count++
		j.At = min(j.At, -since-time.Second)
		j.Runtimes = append(j.Runtimes, all)
		if strings.HasSuffix(of.resources, " waits") {
			j.Runtimes[len(j.Runtimes)-1] = left
			continue
		}
		var expected time.Duration
		if e := t.Claim.PredictedEnd - t.Claim.TaskStarted; t.Claim.TaskStarted > 0 && e > 0 {
			expected = time.Duration(e) * time.Second
		}
		j.InitialPlacements = append(j.InitialPlacements, pool.InitialPlacement{Machine: at,
			Placement: t.Claim.Placement, Resources: t.Claim.Resources, RunningFor: since, Remaining: left,
			PredictedRuntime: expected})
	}
	for i := range x.config.Jobs {
		setGangSize(&x.config.Jobs[i].Spec, x.config.Jobs[i].Spec.Count)
	}
	x.noteSkipped(endless, "task that runs says no walltime, and nothing like it has run before: it is taken to run "+
		"for ever", "tasks that run say no walltime, and nothing like them has run before: they are taken "+
		"to run for ever")
	x.noteSkipped(reclaimed, "task runs in what others leave: it waits for room of its own",
		"tasks run in what others leave: they wait for room of their own")
	x.noteSkipped(lost, "task is left out with its machine", "tasks are left out with their machines")
	return nil
}

// job returns the job that a running task belongs to, without tasks.
func (x *checkpointCell) job(t whatif.RunningTask, name string) (j pool.JobConfig, err error) {
	_, host, _ := strings.Cut(name, ".")
	r := t.Claim.Resources
	j = pool.JobConfig{At: -time.Second, Owner: t.Claim.Submitter.Owner}
	if t.Ask != nil {
		host = t.Ask.Key.Schedd
		if j.Spec.Ad, err = x.adOf(t.Ask); err != nil {
			return j, err
		}
		for _, of := range x.jobs[t.Ask.Key] {
			if of.ID == name {
				j.At = x.relativeTime(of.Submitted)
			}
		}
	} else {
		if s := t.Claim.Placement.Shares; len(s) > 0 {
			if r.GPUs, r.GPUMemory = len(s), 0; !s[0].Whole {
				r.GPUMemory = s[0].Memory
			}
		}
		ad := classad.New()
		if t.Claim.AppClass() == gpu.StreamClass {
			ad.SetString(roost.AttrAppClass, roost.AppStream)
		}
		if t.Claim.WalltimeEnd > t.Claim.TaskStarted && t.Claim.TaskStarted > 0 {
			ad.SetInt(roost.AttrWalltime, t.Claim.WalltimeEnd-t.Claim.TaskStarted)
		}
		if t.Claim.Queue != "" {
			ad.SetString(roost.AttrQueue, t.Claim.Queue)
		}
		if t.Claim.Limits != "" {
			ad.SetString(roost.AttrLimits, t.Claim.Limits)
		}
		j.Spec.Ad = setDemand(ad, t.Claim.Submitter.Group, t.Claim.Band, r)
	}
	j.Schedd = x.schedd[host]
	j.Spec.Ad.SetString(roost.AttrJobName, cmp.Or(name, "task"))
	return j, nil
}

// relativeTime returns a submission time relative to the start of the simulation.
func (x *checkpointCell) relativeTime(nanos int64) time.Duration {
	return min(max(time.Duration(nanos-x.from.Now.UnixNano()), -pool.ForEver), -time.Second)
}

// adOf returns the job ad that a request was made of, as far as it matters.
func (x *checkpointCell) adOf(a *cellstate.PendingRequest) (*classad.Ad, error) {
	ad, err := classad.Parse(a.AdText)
	if err != nil {
		return nil, fmt.Errorf("request %d of schedd %s: %w", a.Key.ID, a.Key.Schedd, err)
	}
	for _, name := range []string{roost.AttrFileSystemDomain, roost.AttrGangSize, roost.AttrJobID, roost.AttrWalltime,
		roost.AttrQueue} {
		ad.Delete(name)
	}
	if a.Walltime > 0 {
		ad.SetInt(roost.AttrWalltime, int64(a.Walltime/time.Second))
	}
	if a.Gang > 1 {
		ad.SetInt(roost.AttrGangSize, int64(a.Gang))
	}
	if a.Priority != 0 {
		ad.SetInt(roost.AttrPriority, int64(a.Priority))
	}
	if a.Queue != "" {
		ad.SetString(roost.AttrQueue, a.Queue)
	}
	if a.Reservation != "" {
		ad.SetString(roost.AttrReservation, a.Reservation)
	}
	return setDemand(ad, a.Submitter.Group, a.Band, a.Class.Resources), nil
}

// setDemand writes what a task takes into an ad, with its group and band.
func setDemand(ad *classad.Ad, group string, band roost.PriorityBand, r roost.Resources) *classad.Ad {
	if ad.SetString(roost.AttrBand, band.String()); group != "" {
		ad.SetString(roost.AttrGroup, group)
	}
	ad.SetReal(roost.AttrRequestCpus, r.CPU.Cores())
	ad.SetInt(roost.AttrRequestMemory, int64((r.Memory+roost.MiB-1)/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((r.Disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrRequestGpus, int64(r.GPUs))
	if ad.Delete(roost.AttrRequestGpuMem); r.GPUs > 0 && r.GPUMemory > 0 {
		ad.SetInt(roost.AttrRequestGpuMem, int64((r.GPUMemory+roost.MiB-1)/roost.MiB))
	}
	return ad
}

// setGangSize gives a job count tasks. It retains the gang size if count is a multiple of
// it, and otherwise makes one gang of all tasks.
func setGangSize(s *queue.SubmitSpec, count int) {
	s.Count = count
	size, _ := s.Ad.Int(roost.AttrGangSize)
	switch {
	case size > 1 && count == 1:
		s.Ad.Delete(roost.AttrGangSize)
	case size > 1 && int64(count)%size != 0:
		s.Ad.SetInt(roost.AttrGangSize, min(int64(count), queue.MaxGangSize))
	}
}

// addWaitingJobs makes a job of each waiting job of the checkpoint, in the order in which
// its schedd starts them.
func (x *checkpointCell) addWaitingJobs() error {
	endless, unlike := 0, 0
	for _, a := range x.simulation.Requests {
		x.tasks[a.Key] += a.OwnWanted
		if a.OwnWanted == 0 {
			continue
		}
		if a.GangRequest != 0 {
			unlike += a.OwnWanted
			continue
		}
		length := x.simulation.Runtime(a)
		if length == 0 {
			endless += a.OwnWanted
			length = pool.ForEver
		} else if length > maxRuntime {
			x.unboundedRuns += a.OwnWanted
			length = pool.ForEver
		}
		left := a.OwnWanted
		for _, of := range append(slices.Clone(x.jobs[a.Key]), cellstate.JobRow{ID: "request " + fmt.Sprint(a.Key.ID),
			Waiting: left, Submitted: a.Oldest, Priority: a.Priority}) {
			n := min(of.Waiting, left)
			if n == 0 {
				continue
			}
			left -= n
			ad, err := x.adOf(a)
			if err != nil {
				return err
			}
			ad.SetString(roost.AttrJobName, of.ID)
			ad.SetInt(roost.AttrPriority, int64(of.Priority))
			j := pool.JobConfig{At: x.relativeTime(of.Submitted), Schedd: x.schedd[a.Key.Schedd],
				Owner: a.Submitter.Owner, Spec: queue.SubmitSpec{Ad: ad}, Runtimes: []time.Duration{length}}
			setGangSize(&j.Spec, n)
			x.config.Jobs = append(x.config.Jobs, j)
		}
	}
	x.noteSkipped(endless, "task that waits says no walltime, and nothing like it has run before: it is taken to run "+
		"for ever", "tasks that wait say no walltime, and nothing like them has run before: they are taken to "+
		"run for ever")
	x.noteSkipped(unlike, "task that waits is left out: those that start together with it ask for other things",
		"tasks that wait are left out: of those that start together not all ask for the same")
	return nil
}

// noteUnseen adds a note about tasks that schedds report but neither the negotiator nor a
// machine has.
func (x *checkpointCell) noteUnseen() {
	tasks := 0
	for _, key := range slices.SortedFunc(maps.Keys(x.jobs), match.RequestKey.Compare) {
		n := 0
		for _, j := range x.jobs[key] {
			n += j.Waiting + j.Running
		}
		tasks += max(n-x.tasks[key], 0)
	}
	x.noteSkipped(tasks, "task is left out: it has only just come, or is on its way between a schedd and a machine",
		"tasks are left out: they have only just come, or are on their way between schedds and machines")
	x.noteSkipped(len(x.from.SilentSchedds),
		"schedd did not say which jobs it has: its tasks are in one job for each request",
		"schedds did not say which jobs they have: their tasks are in one job for each request")
	x.notes = append(x.notes, "jobs that are held, or wait for a time or another job, are not played")
}
