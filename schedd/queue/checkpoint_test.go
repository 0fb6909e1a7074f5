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
	"github.com/roost-batch/roost/internal/story"
)

// The stories of checkpoints: each step is told to a queue that lives on, and to one that is made anew from snapshots before every step.
func TestCheckpointStories(t *testing.T) {
	story.Run(t, "testdata/checkpoint/*.txt", func(t *testing.T) func(story.Step) string {
		d := &saver{desk: newDesk(t)}
		return func(s story.Step) string {
			d.now = d.now.Add(time.Minute)
			d.same(d.copied())
			d.q = d.copied()
			if err := d.do(s); err != nil {
				return "refused: " + err.Error()
			}
			return d.state()
		}
	})
}

// saver is a desk of one job whose tasks are checkpointed.
type saver struct {
	*desk
	id roost.JobID
}

func (d *saver) submit(ad_ string) error {
	limits := Limits{Secret: func() []byte { return bytes.Repeat([]byte{7}, 32) }}
	events, ids, _, err := d.q.Submit(d.now, alice, "k", []Spec{{Ad: ad(d, ad_), Count: 1}}, limits)
	if err == nil {
		d.apply(events...)
		d.id = ids[0]
	}
	return err
}

func (d *saver) present() roost.AttemptID {
	s, _ := d.q.TaskStatus(d.id.Task(0))
	return roost.AttemptID{Task: d.id.Task(0), Attempt: s.Task.Attempt}
}

// take applies events unless there is an error.
func (d *saver) take(events []Event, err error) error {
	if err == nil {
		d.apply(events...)
	}
	return err
}

func (d *saver) one(e Event, ok bool) error {
	if !ok {
		return errors.New("nothing is recorded")
	}
	d.apply(e)
	return nil
}

func (d *saver) do(s story.Step) error {
	args := map[string]string{}
	for _, word := range s.Args {
		k, v, _ := strings.Cut(word, "=")
		args[k] = v
	}
	n := func(name string) int64 { v, _ := strconv.ParseInt(args[name], 10, 64); return v }
	minutes := func(name string) int64 { return n(name) * int64(time.Minute) }
	target := Target{Job: d.id}
	switch s.Command {
	case "submit":
		return d.submit(strings.Join(s.Input, "\n"))
	case "start":
		a := d.desk.start()
		return d.one(d.q.Start(d.now, a))
	case "keep":
		e, err := d.q.Keep(d.now, d.present(), Image{Sequence: uint64(n("sequence")), Time: d.now.UnixNano(), Size: 100, Work: Work{Wall: minutes("wall")}, Node: "n", Slot: args["slot"] != ""})
		if err != nil {
			return err
		}
		return d.one(e, true)
	case "unkept":
		return d.one(d.q.Unkept(d.now, d.present(), args["why"], args["asked"] != ""))
	case "bad":
		return d.one(d.q.Spoil(d.now, d.id.Task(0), uint64(n("sequence")), "it is not there"))
	case "end":
		d.end(d.present(), Exit{Cause: Cause(n("cause")), Code: int32(n("code")), Wall: minutes("wall"), Reason: args["why"]})
		return nil
	case "lose":
		return d.one(d.q.Lose(d.now, d.present(), "its node is gone"))
	case "suspend":
		return d.take(d.q.Suspend(d.now, alice, target, ""))
	case "resume":
		return d.take(d.q.Thaw(d.now, alice, target))
	case "owner": // of the machine
		return d.one(d.q.Stood(d.now, d.present(), "ws17", strings.ReplaceAll(args["back"], "_", " ")))
	case "restart":
		return d.restart()
	case "hold":
		return d.take(d.q.Hold(d.now, alice, target, "later"))
	case "release":
		return d.take(d.q.Release(d.now, alice, target))
	case "remove":
		return d.take(d.q.Remove(d.now, alice, target, "", false))
	case "retry":
		return d.take(d.q.Retry(d.now, alice, target))
	case "purge":
		return d.one(d.q.Purge(d.now, d.id.Seq))
	}
	d.Fatalf("line %d: no such step", s.Line)
	return nil
}

// state tells all that checkpoints have to do with.
func (d *saver) state() string {
	var b strings.Builder
	if s, ok := d.q.TaskStatus(d.id.Task(0)); ok {
		fmt.Fprintf(&b, "%v, attempt %d", s.Task.State, s.Task.Attempt)
		if s.Reason != "" {
			fmt.Fprintf(&b, " (%s)", s.Reason)
		}
		if x := s.Task.Exit; x != nil && s.Task.State.Final() {
			fmt.Fprintf(&b, ", %v of work", time.Duration(x.Wall+s.Task.Base.Wall))
		}
		d.q.Images(func(m Stored) { fmt.Fprintf(&b, ", image %d.%d", m.Attempt, m.Sequence) })
		b.WriteByte('\n')
	}
	for _, id := range d.q.Requests() {
		r, _ := d.q.Request(id)
		if r.Ready > 0 && strings.Contains(r.Ad, roost.AttrHasCheckpoint) {
			b.WriteString("wants a machine that can restore")
			if strings.Contains(r.Ad, roost.AttrSlotUsers+" isnt false") {
				b.WriteString(", with slot users")
			}
			b.WriteByte('\n')
		}
	}
	if a := d.present2(); a.Attempt > 0 && d.q.Live(a) {
		p, err := d.q.Launch(a)
		if err != nil {
			d.Fatal(err)
		}
		b.WriteString("runs from ")
		if p.Restore == nil {
			b.WriteString("nothing")
		} else {
			b.WriteString(p.Restore.Text())
		}
		if p.Walltime > 0 {
			fmt.Fprintf(&b, ", for %v", p.Walltime)
		}
		if c := p.Checkpoint; c != nil {
			fmt.Fprintf(&b, ", next image %d, interval %v", c.Next, c.Interval)
		}
		b.WriteByte('\n')
	}
	for _, m := range d.q.TakeDropped() {
		fmt.Fprintf(&b, "delete %d.%d\n", m.Attempt, m.Sequence)
	}
	for _, f := range d.q.TakeFreezes() {
		fmt.Fprintf(&b, "frozen: %v\n", f.Frozen)
	}
	for _, v := range d.q.TakeVacates() {
		fmt.Fprintf(&b, "vacate, keep: %v\n", v.Keep)
	}
	return b.String()
}

func (d *saver) present2() roost.AttemptID {
	if _, ok := d.q.TaskStatus(d.id.Task(0)); !ok {
		return roost.AttemptID{}
	}
	return d.present()
}

// restart goes on from what is on disk.
func (d *saver) restart() error {
	text, ok := d.q.Snapshot(d.id.Seq)
	if !ok {
		return errors.New("there is no such job")
	}
	q := New(d.q.host)
	if err := q.Restore(text); err != nil {
		return err
	}
	q.Check()
	again, _ := q.Snapshot(d.id.Seq)
	if string(again) != string(text) {
		return errors.New("what is restored differs")
	}
	d.q = q
	return nil
}
