package queue

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestCheckpointScripts plays the scripts of checkpoints. Each step goes to a queue that
// lives on, and to one that is restored from snapshots before every step.
func TestCheckpointScripts(t *testing.T) {
	script.Run(t, "testdata/checkpoint/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		d := &checkpointTest{testQueue: newTestQueue(t)}
		return func(s script.ScriptCommand) string {
			d.now = d.now.Add(time.Minute)
			d.checkSame(d.restoredCopy())
			d.queue = d.restoredCopy()
			if err := d.runCommand(s); err != nil {
				return "refused: " + err.Error()
			}
			return d.describeState()
		}
	})
}

// checkpointTest is a desk of one job whose tasks are checkpointed.
type checkpointTest struct {
	*testQueue
	id roost.JobID
}

func (d *checkpointTest) submit(ad_ string) error {
	limits := SubmitLimits{NewSecret: func() []byte { return bytes.Repeat([]byte{7}, 32) }}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k",
		[]jobad.SubmitSpec{{Ad: parseTestAd(d, ad_), Count: 1}}, limits)
	if err == nil {
		d.apply(events...)
		d.id = ids[0]
	}
	return err
}

func (d *checkpointTest) currentAttempt() roost.AttemptID {
	s, _ := d.queue.TaskStatus(d.id.Task(0))
	return roost.AttemptID{Task: d.id.Task(0), Attempt: s.Task.Attempt}
}

// applyIfValid applies events unless there is an error.
func (d *checkpointTest) applyIfValid(events []eventlog.JobEvent, err error) error {
	if err == nil {
		d.apply(events...)
	}
	return err
}

func (d *checkpointTest) singleEvent(e eventlog.JobEvent, ok bool) error {
	if !ok {
		return errors.New("nothing is recorded")
	}
	d.apply(e)
	return nil
}

func (d *checkpointTest) runCommand(s script.ScriptCommand) error {
	args := map[string]string{}
	for _, word := range s.Args {
		k, v, _ := strings.Cut(word, "=")
		args[k] = v
	}
	n := func(name string) int64 { v, _ := strconv.ParseInt(args[name], 10, 64); return v }
	minutes := func(name string) int64 { return n(name) * int64(time.Minute) }
	target := TaskSelector{Job: d.id}
	switch s.Command {
	case "submit":
		return d.submit(strings.Join(s.Input, "\n"))
	case "start":
		a := d.testQueue.start()
		return d.singleEvent(d.queue.RecordStarted(d.now, a))
	case "keep":
		e, err := d.queue.RecordCheckpoint(d.now, d.currentAttempt(),
			eventlog.CheckpointImage{Sequence: uint64(n("sequence")),
				Time: d.now.UnixNano(), Size: 100, CPUUsage: eventlog.CPUUsage{Wall: minutes("wall")}, Node: "n",
				SlotUser: args["slot"] != ""})
		if err != nil {
			return err
		}
		return d.singleEvent(e, true)
	case "unkept":
		return d.singleEvent(d.queue.RecordCheckpointFailure(d.now, d.currentAttempt(), args["why"],
			args["asked"] != ""))
	case "bad":
		return d.singleEvent(d.queue.RejectCheckpoint(d.now, d.id.Task(0), uint64(n("sequence")), "it is not there"))
	case "end":
		d.end(d.currentAttempt(), eventlog.AttemptExit{Cause: eventlog.ExitCause(n("cause")), Code: int32(n("code")),
			Wall: minutes("wall"), Reason: args["why"]})
		return nil
	case "lose":
		return d.singleEvent(d.queue.RecordLost(d.now, d.currentAttempt(), "its node is gone"))
	case "suspend":
		return d.applyIfValid(d.queue.SuspendTasks(d.now, alice, target, ""))
	case "resume":
		return d.applyIfValid(d.queue.ResumeTasks(d.now, alice, target))
	case "owner": // of the machine
		return d.singleEvent(d.queue.SuspendForOwner(d.now, d.currentAttempt(), "ws17",
			strings.ReplaceAll(args["back"], "_", " ")))
	case "restart":
		return d.reopen()
	case "hold":
		return d.applyIfValid(d.queue.HoldTasks(d.now, alice, target, "later"))
	case "release":
		return d.applyIfValid(d.queue.ReleaseTasks(d.now, alice, target))
	case "remove":
		return d.applyIfValid(d.queue.RemoveTasks(d.now, alice, target, "", false))
	case "retry":
		return d.applyIfValid(d.queue.RetryTasks(d.now, alice, target))
	case "purge":
		return d.singleEvent(d.queue.PurgeJob(d.now, d.id.Seq))
	}
	d.Fatalf("line %d: no such step", s.Line)
	return nil
}

// describeState tells all that checkpoints have to do with.
func (d *checkpointTest) describeState() string {
	var b strings.Builder
	if s, ok := d.queue.TaskStatus(d.id.Task(0)); ok {
		fmt.Fprintf(&b, "%v, attempt %d", s.Task.State, s.Task.Attempt)
		if s.Reason != "" {
			fmt.Fprintf(&b, " (%s)", s.Reason)
		}
		if x := s.Task.Exit; x != nil && s.Task.State.IsFinal() {
			fmt.Fprintf(&b, ", %v of work", time.Duration(x.Wall+s.Task.EarlierUsage.Wall))
		}
		d.queue.EachImage(func(m StoredImage) { fmt.Fprintf(&b, ", image %d.%d", m.Attempt, m.Sequence) })
		b.WriteByte('\n')
	}
	for _, id := range d.queue.Requests() {
		r, _ := d.queue.Request(id)
		if r.Ready > 0 && strings.Contains(r.Ad, roost.AttrHasCheckpoint) {
			b.WriteString("wants a machine that can restore")
			if strings.Contains(r.Ad, roost.AttrSlotUsers+" isnt false") {
				b.WriteString(", with slot users")
			}
			b.WriteByte('\n')
		}
	}
	if a := d.present2(); a.Attempt > 0 && d.queue.IsLive(a) {
		p, err := d.queue.Program(a)
		if err != nil {
			d.Fatal(err)
		}
		b.WriteString("runs from ")
		if p.Restore == nil {
			b.WriteString("nothing")
		} else {
			b.WriteString(p.Restore.Describe())
		}
		if p.Walltime > 0 {
			fmt.Fprintf(&b, ", for %v", p.Walltime)
		}
		if c := p.Checkpoint; c != nil {
			fmt.Fprintf(&b, ", next image %d, interval %v", c.Next, c.Interval)
		}
		b.WriteByte('\n')
	}
	for _, m := range d.queue.TakeDroppedImages() {
		fmt.Fprintf(&b, "delete %d.%d\n", m.Attempt, m.Sequence)
	}
	for _, f := range d.queue.TakeFreezes() {
		fmt.Fprintf(&b, "frozen: %v\n", f.Frozen)
	}
	for _, v := range d.queue.TakeVacates() {
		fmt.Fprintf(&b, "vacate, keep: %v\n", v.Checkpoint)
	}
	return b.String()
}

func (d *checkpointTest) present2() roost.AttemptID {
	if _, ok := d.queue.TaskStatus(d.id.Task(0)); !ok {
		return roost.AttemptID{}
	}
	return d.currentAttempt()
}

// reopen goes on from what is on disk.
func (d *checkpointTest) reopen() error {
	text, ok := d.queue.Snapshot(d.id.Seq)
	if !ok {
		return errors.New("there is no such job")
	}
	q := New(d.queue.host)
	if err := q.RestoreSnapshot(text); err != nil {
		return err
	}
	q.Check()
	again, _ := q.Snapshot(d.id.Seq)
	if string(again) != string(text) {
		return errors.New("what is restored differs")
	}
	d.queue = q
	return nil
}
