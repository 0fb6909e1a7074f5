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
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/schedd/queue"
)

// running makes jobs of what runs.
func (x *cell) running() error {
	endless, lent, lost := 0, 0, 0
	for _, t := range x.play.Tasks() {
		at, ok := x.machine[t.Machine]
		if !ok {
			lost++
			continue
		}
		name := t.Claim.JobName()
		_, host, _ := strings.Cut(name, ".")
		of := course{job: name, key: match.Key{Schedd: host}}
		if t.Ask != nil {
			of.key = t.Ask.Key
		} else {
			of.of = fmt.Sprint(t.Claim.Resources, t.Claim.App(), t.Claim.Band, t.Claim.Submitter)
		}
		since := time.Duration(0)
		if t.Claim.Since > 0 {
			since = max(time.Duration(x.from.Now.Unix()-t.Claim.Since)*time.Second, 0)
		}
		left := x.bounded(t.Left)
		all := min(since+left, pool.ForEver)
		if left == 0 {
			endless++
			left, all = pool.ForEver, pool.ForEver
		}
		if x.tasks[match.Key{Schedd: of.key.Schedd, ID: max(of.key.ID, x.request[name])}]++; t.Claim.Placement.Reclaimed || len(t.Claim.Placement.Parts)+len(t.Claim.Placement.Shares) == 0 {
			lent++
			of.of += " waits"
		}
		i, known := x.runs[of]
		if !known {
			i, x.runs[of] = len(x.c.Jobs), len(x.c.Jobs)
			j, err := x.job(t, name)
			if err != nil {
				return err
			}
			x.c.Jobs = append(x.c.Jobs, j)
		}
		j := &x.c.Jobs[i]
		j.Spec.Count++
		j.At = min(j.At, -since-time.Second)
		j.Run = append(j.Run, all)
		if strings.HasSuffix(of.of, " waits") {
			j.Run[len(j.Run)-1] = left
			continue
		}
		var expected time.Duration
		if e := t.Claim.Expected - t.Claim.Since; t.Claim.Since > 0 && e > 0 {
			expected = time.Duration(e) * time.Second
		}
		j.Placed = append(j.Placed, pool.Place{Machine: at, Placement: t.Claim.Placement, Resources: t.Claim.Resources, Since: since, Left: left, Expected: expected})
	}
	for i := range x.c.Jobs {
		gangs(&x.c.Jobs[i].Spec, x.c.Jobs[i].Spec.Count)
	}
	x.note(endless, "task that runs says no walltime, and nothing like it has run before: it is taken to run for ever", "tasks that run say no walltime, and nothing like them has run before: they are taken to run for ever")
	x.note(lent, "task runs in what others leave: it waits for room of its own", "tasks run in what others leave: they wait for room of their own")
	x.note(lost, "task is left out with its machine", "tasks are left out with their machines")
	return nil
}

// job is what a task that runs is of, with no task yet.
func (x *cell) job(t live.Task, name string) (j pool.Job, err error) {
	_, host, _ := strings.Cut(name, ".")
	r := t.Claim.Resources
	j = pool.Job{At: -time.Second, Owner: t.Claim.Submitter.Owner}
	if t.Ask != nil {
		host = t.Ask.Key.Schedd
		if j.Spec.Ad, err = x.ad(t.Ask); err != nil {
			return j, err
		}
		for _, of := range x.jobs[t.Ask.Key] {
			if of.ID == name {
				j.At = x.ago(of.Submitted)
			}
		}
	} else {
		if s := t.Claim.Placement.Shares; len(s) > 0 {
			if r.GPUs, r.GPUMemory = len(s), 0; !s[0].Whole {
				r.GPUMemory = s[0].Memory
			}
		}
		ad := classad.New()
		if t.Claim.App() == gpu.Stream {
			ad.SetString(roost.AttrAppClass, roost.AppStream)
		}
		if t.Claim.Ends > t.Claim.Since && t.Claim.Since > 0 {
			ad.SetInt(roost.AttrWalltime, t.Claim.Ends-t.Claim.Since)
		}
		if t.Claim.Queue != "" {
			ad.SetString(roost.AttrQueue, t.Claim.Queue)
		}
		if t.Claim.Limits != "" {
			ad.SetString(roost.AttrLimits, t.Claim.Limits)
		}
		j.Spec.Ad = asked(ad, t.Claim.Submitter.Group, t.Claim.Band, r)
	}
	j.Schedd = x.schedd[host]
	j.Spec.Ad.SetString(roost.AttrJobName, cmp.Or(name, "task"))
	return j, nil
}

// ago is when something was submitted, as a pool that begins now has it.
func (x *cell) ago(nanos int64) time.Duration {
	return min(max(time.Duration(nanos-x.from.Now.UnixNano()), -pool.ForEver), -time.Second)
}

// ad is what an ask was made of, as far as it matters.
func (x *cell) ad(a *picture.Ask) (*classad.Ad, error) {
	ad, err := classad.Parse(a.Text)
	if err != nil {
		return nil, fmt.Errorf("request %d of schedd %s: %w", a.Key.ID, a.Key.Schedd, err)
	}
	for _, name := range []string{roost.AttrFileSystemDomain, roost.AttrGangSize, roost.AttrJobID, roost.AttrWalltime, roost.AttrQueue} {
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
	return asked(ad, a.Submitter.Group, a.Band, a.Class.Resources), nil
}

// asked writes into an ad what a task takes, and for whom.
func asked(ad *classad.Ad, group string, band roost.Band, r roost.Resources) *classad.Ad {
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

// gangs gives a job so many tasks, of which as many start together as did, or all where that does not come out even.
func gangs(s *queue.Spec, count int) {
	s.Count = count
	size, _ := s.Ad.Int(roost.AttrGangSize)
	switch {
	case size > 1 && count == 1:
		s.Ad.Delete(roost.AttrGangSize)
	case size > 1 && int64(count)%size != 0:
		s.Ad.SetInt(roost.AttrGangSize, min(int64(count), queue.MaxGang))
	}
}

// waiting makes jobs of what waits, each of the checkpoint's one, in the order in which its schedd takes them.
func (x *cell) waiting() error {
	endless, unlike := 0, 0
	for _, a := range x.play.Asks {
		x.tasks[a.Key] += a.Own
		if a.Own == 0 {
			continue
		}
		if a.Lead != 0 {
			unlike += a.Own
			continue
		}
		length := x.play.Length(a)
		if length == 0 {
			endless += a.Own
			length = pool.ForEver
		} else if length > longest {
			x.ages += a.Own
			length = pool.ForEver
		}
		left := a.Own
		for _, of := range append(slices.Clone(x.jobs[a.Key]), picture.Job{ID: "request " + fmt.Sprint(a.Key.ID), Waiting: left, Submitted: a.Oldest, Priority: a.Priority}) {
			n := min(of.Waiting, left)
			if n == 0 {
				continue
			}
			left -= n
			ad, err := x.ad(a)
			if err != nil {
				return err
			}
			ad.SetString(roost.AttrJobName, of.ID)
			ad.SetInt(roost.AttrPriority, int64(of.Priority))
			j := pool.Job{At: x.ago(of.Submitted), Schedd: x.schedd[a.Key.Schedd], Owner: a.Submitter.Owner, Spec: queue.Spec{Ad: ad}, Run: []time.Duration{length}}
			gangs(&j.Spec, n)
			x.c.Jobs = append(x.c.Jobs, j)
		}
	}
	x.note(endless, "task that waits says no walltime, and nothing like it has run before: it is taken to run for ever", "tasks that wait say no walltime, and nothing like them has run before: they are taken to run for ever")
	x.note(unlike, "task that waits is left out: those that start together with it ask for other things", "tasks that wait are left out: of those that start together not all ask for the same")
	return nil
}

// unseen says what schedds have told of that neither the negotiator nor a machine has.
func (x *cell) unseen() {
	tasks := 0
	for _, key := range slices.SortedFunc(maps.Keys(x.jobs), match.Key.Compare) {
		n := 0
		for _, j := range x.jobs[key] {
			n += j.Waiting + j.Running
		}
		tasks += max(n-x.tasks[key], 0)
	}
	x.note(tasks, "task is left out: it has only just come, or is on its way between a schedd and a machine", "tasks are left out: they have only just come, or are on their way between schedds and machines")
	x.note(len(x.from.Silent), "schedd did not say which jobs it has: its tasks are in one job for each request", "schedds did not say which jobs they have: their tasks are in one job for each request")
	x.notes = append(x.notes, "jobs that are held, or wait for a time or another job, are not played")
}
