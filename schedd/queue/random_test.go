package queue

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// TestRandomAndReplay checks that random work in any order keeps the invariants. Replay
// of the log ends in the same state, from the beginning and from a snapshot on the way.
func TestRandomAndReplay(t *testing.T) {
	for seed := range uint64(60) {
		d, rng := newTestQueue(t), rand.New(rand.NewPCG(seed, 7))
		var restored *Queue
		from, restart := 0, rng.IntN(300)
		for i := range 300 {
			d.randomStep(rng)
			if i == restart {
				restored, from = d.restoredCopy(), len(d.log)
			}
		}
		replayed := New("h")
		for _, e := range d.log {
			replayed.Apply(e)
		}
		for _, e := range d.log[from:] {
			restored.Apply(e)
			restored.Check()
		}
		replayed.Check()
		d.checkSame(replayed)
		d.checkSame(restored)
		d.checkSame(d.restoredCopy())
	}
}

// restoredCopy is a queue made of the snapshots of the desk's.
func (d *testQueue) restoredCopy() *Queue {
	d.Helper()
	q := New("h")
	for seq := range d.queue.jobs {
		b, _ := d.queue.Snapshot(seq)
		if err := q.RestoreSnapshot(b); err != nil {
			d.Fatal(err)
		}
	}
	q.RaiseLastSeq(d.queue.LastSeq())
	q.Check()
	return q
}

// checkSame fails unless a queue holds what the desk's does.
func (d *testQueue) checkSame(q *Queue) {
	d.Helper()
	if q.Len() != d.queue.Len() || q.OpenTaskCount() != d.queue.OpenTaskCount() {
		d.Fatalf("got %d jobs and %d tasks, want %d and %d", q.Len(), q.OpenTaskCount(), d.queue.Len(),
			d.queue.OpenTaskCount())
	}
	for seq := range d.queue.jobs {
		want, _ := d.queue.Snapshot(seq)
		got, _ := q.Snapshot(seq)
		a, _ := d.queue.Status(seq)
		b, _ := q.Status(seq)
		a.Request, b.Request = 0, 0
		for _, s := range []*ServiceStatus{a.Service, b.Service} {
			if s != nil && s.Autoscale != nil { // what was measured is in memory only
				s.Autoscale = &AutoscaleStatus{Changes: s.Autoscale.Changes, Reason: s.Autoscale.Reason}
			}
			if s != nil && s.Sizes != nil {
				s.Sizes = &SizeStatus{Size: s.Sizes.Size}
			}
		}
		if reflect.DeepEqual(a.Alloc, b.Alloc) && reflect.DeepEqual(a.Inside, b.Inside) {
			b.Alloc, b.Inside = a.Alloc, a.Inside
		}
		if a.Service != nil && b.Service != nil && reflect.DeepEqual(a.Service, b.Service) {
			b.Service = a.Service
		}
		if !bytes.Equal(got, want) || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) && a.Task == nil {
			d.Fatalf("job %d is %+v, want %+v\n%x\n%x", seq, b, a, got, want)
		}
	}
}

func (d *testQueue) randomStep(rng *rand.Rand) {
	d.now = d.now.Add(time.Second)
	seq := uint64(1 + rng.IntN(int(d.queue.lastSeq)+1))
	target := TaskSelector{Job: roost.JobID{Seq: seq, Host: "h"}}
	if rng.IntN(2) == 0 {
		target.Ranges = []eventlog.IndexRange{{First: 0, Last: rng.IntN(3)}}
	}
	var events []eventlog.JobEvent
	if rng.IntN(20) == 0 {
		d.now = d.now.Add(time.Duration(rng.IntN(7200)-3600) * time.Second) // the clock is set
	}
	switch rng.IntN(22) {
	case 18, 19:
		events = d.evictSome(rng)
	case 20, 21:
		events = d.updateSome(rng, target)
	case 16, 17:
		events = d.queue.DueRuns(d.now, SubmitLimits{})
	case 14, 15:
		events = d.urge(rng, target)
	case 12:
		a := JobAlteration{Changes: alteredAd(d, randomChange(rng)), ExpectedVersion: -1}
		if rng.IntN(8) == 0 {
			a.Count = 1 + rng.IntN(5)
		}
		target.Ranges = nil
		events, _ = d.queue.AlterJob(d.now, alice, target, a, SubmitLimits{})
	case 13:
		other := TaskSelector{Job: roost.JobID{Seq: 1 + rng.Uint64N(d.queue.lastSeq+1), Host: "h"}}
		events, _ = d.queue.SwapOrder(d.now, alice, TaskSelector{Job: target.Job}, other)
	case 0:
		extra := []string{"", "MaxRetries = 1", "MaxRunning = 2", "Rerunnable = false", "HoldOnSubmit = true",
			"DeferralTime = 1700000200", "PBS = []", "GangSize = 2", "Service = []",
			`Service = []; Autoscale = [Max = 6; CPU = 0.5; Every = 1; DownWindow = 5]`,
			`Service = []; VerticalAutoscale = [MaxCpus = 4; MaxMemory = 4096; Every = 1; Window = 60]`,
			"Service = [Restarts = 1]; Checks = {[Name = \"up\"; Kind = \"exec\"; Command = {\"true\"}]}",
			`Schedule = [Cron = "* * * * *"]`, `Schedule = [Cron = "*/2 * * * *"; Overlap = "replace"]`,
			`Schedule = [Cron = "H * * * *"; Overlap = "allow"; Missed = "all"]`,
			"PeriodicHold = NumJobStarts > 1 && NumHolds == 0; PeriodicRelease = time() - EnteredCurrentStatus > 20; " +
				"OnExitRemove = ExitCode == 0; PeriodicVacate = NumJobStarts == 2"}[rng.IntN(16)]
		spec := jobad.SubmitSpec{Ad: parseTestAd(d, extra), Count: 1 + rng.IntN(5)}
		if d.queue.jobs[seq] != nil && rng.IntN(3) == 0 {
			spec.Ad.SetStrings(roost.AttrDependsOn, d.anyDependencies(rng))
		}
		if rng.IntN(3) == 0 {
			c := jobad.TaskColumn{Name: []string{roost.AttrRequestMemory, roost.AttrWalltime}[rng.IntN(2)]}
			for range spec.Count {
				c.Values = append(c.Values, strconv.Itoa(1024*(1+rng.IntN(2))))
			}
			spec.Columns = []jobad.TaskColumn{c}
		}
		d.keys++
		events, _, _, _ = d.queue.SubmitJobs(d.now, alice, strconv.Itoa(d.keys), []jobad.SubmitSpec{spec},
			SubmitLimits{})
	case 1:
		events = d.holdTasks(rng, target)
	case 2:
		events, _ = d.queue.ReleaseTasks(d.now, []CallerIdentity{alice, root}[rng.IntN(2)], target)
	case 3:
		events, _ = d.queue.RemoveTasks(d.now, alice, target, "", false)
	case 4:
		events, _ = d.queue.RetryTasks(d.now, alice, target)
	case 5:
		if done := d.queue.TakeFinal(); len(done) > 0 && rng.IntN(3) == 0 {
			if e, ok := d.queue.PurgeJob(d.now, done[0]); ok {
				events = []eventlog.JobEvent{e}
			}
		}
	case 6:
		events, _ = d.queue.SuspendTasks(d.now, alice, target, "")
	case 7:
		events, _ = d.queue.ResumeTasks(d.now, alice, target)
	case 8:
		events, _ = d.queue.RerunTasks(d.now, alice, target, false)
	default:
		events = d.advanceRandom(rng)
	}
	d.apply(events...)
	d.apply(d.queue.Followups(d.now)...)
	d.apply(d.queue.DueRestarts(d.now)...)
	d.apply(d.scaleSome(rng)...)
	d.apply(d.queue.DecidePolicies(d.now)...)
	for events := d.queue.HealthRestarts(d.now); len(events) > 0; events = d.queue.HealthRestarts(d.now) {
		d.apply(events...)
	}
}

// evictSome drains a part of the only machine.
func (d *testQueue) evictSome(rng *rand.Rand) []eventlog.JobEvent {
	drain := NodeDrain{Node: "n"}
	if rng.IntN(6) == 0 {
		drain.Deadline = d.now
	}
	var some []roost.AttemptID
	for _, a := range d.queue.ActiveAttempts() {
		if rng.IntN(3) > 0 {
			some = append(some, a.Attempt)
		}
	}
	d.queue.SetDrains([]NodeDrain{drain})
	return d.queue.EvictAttempts(d.now, d.queue.Drains(d.now)[0], some)
}

// updateSome updates a service, or acts on its update.
func (d *testQueue) updateSome(rng *rand.Rand, t TaskSelector) (events []eventlog.JobEvent) {
	t.Ranges = nil
	switch rng.IntN(4) {
	case 0:
		events, _ = d.queue.CommandUpdate(d.now, alice, t, update.Command(1+rng.IntN(7)))
	case 1:
		events, _, _ = d.queue.ReviseJob(d.now, alice, t, JobRevision{}, SubmitLimits{})
	default:
		src := fmt.Sprintf(`Update = [Surge = "%d"; MaxDown = "1"; MinReady = 1]; Arguments = {"%d"}`, rng.IntN(3),
			rng.IntN(2))
		events, _, _ = d.queue.ReviseJob(d.now, alice, t, JobRevision{Ad: serviceAd(d, src), Count: 1 + rng.IntN(5)},
			SubmitLimits{})
	}
	return events
}

// advanceRandom moves some task a step on.
func (d *testQueue) advanceRandom(rng *rand.Rand) []eventlog.JobEvent {
	if live := d.queue.ActiveAttempts(); len(live) > 0 && rng.IntN(2) == 0 {
		a := live[rng.IntN(len(live))].Attempt
		switch rng.IntN(8) {
		case 2, 5, 6, 7:
			state := roost.ServiceState(1 + rng.IntN(5))
			if rng.IntN(2) == 0 {
				state = roost.ServiceReady
			}
			if e, ok := d.queue.RecordHealth(d.now, a, state, "up", "no answer"); ok {
				d.queue.NoteFailing(a, rng.IntN(2) == 0)
				return []eventlog.JobEvent{e}
			}
		case 3:
			if e, err := d.queue.RecordCheckpoint(d.now,
				a, eventlog.CheckpointImage{Sequence: uint64(len(d.log)),
					CPUUsage: eventlog.CPUUsage{Wall: 1}}); err == nil {
				return []eventlog.JobEvent{e}
			}
		case 4:
			if e, ok := d.queue.RecordCheckpointFailure(d.now, a, "no", rng.IntN(2) == 0); ok {
				return []eventlog.JobEvent{e}
			}
		case 0:
			if e, ok := d.queue.RecordStarted(d.now, a); ok {
				return []eventlog.JobEvent{e}
			}
		case 1:
			if e, ok := d.queue.RecordLost(d.now, a, "node gone"); ok {
				return []eventlog.JobEvent{e}
			}
		}
		e, err := d.queue.RecordEnded(d.now, a,
			&eventlog.AttemptExit{Code: int32(rng.IntN(2)),
				Cause: eventlog.ExitCause(rng.IntN(int(eventlog.CauseRestore) + 1))})
		if err != nil {
			d.Fatal(err)
		}
		return []eventlog.JobEvent{e}
	}
	for _, r := range d.queue.Requests() {
		if size, ok := d.queue.NextGang(r); ok && size > 1 {
			events, _, ok := d.queue.AssignGang(d.now,
				r, slices.Repeat([]GangClaim{{Node: "n", Address: "unix:/n", Claim: 1}}, size))
			if !ok {
				d.Fatalf("a gang of %d of request %d is whole, and cannot be assigned", size, r)
			}
			return events
		}
		if t, ok := d.queue.NextTask(r); ok {
			e, _, err := d.queue.AssignNext(d.now, t, "n", "unix:/n", 1)
			if err != nil {
				d.Fatal(err)
			}
			return []eventlog.JobEvent{e}
		}
	}
	return nil
}
