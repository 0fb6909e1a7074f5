package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// savingGang is the ad of gangs of three that save their own state.
const savingGang = `GangSize = 3; MaxRetries = 1000; CheckpointSelf = true; CheckpointSignal = "USR2"; ` +
	`CheckpointExitCode = 85; CheckpointInterval = 60`

// savedExit is how a program ends that has saved its state.
var savedExit = eventlog.AttemptExit{Code: 85}

// epochTest is a queue with a job of saving gangs, and the disk that images come home to.
type epochTest struct {
	*testQueue
	id      roost.JobID
	disk    map[string]bool // names of images that are there
	durable int             // events of the log that are on disk
}

func newEpochTest(t testing.TB, gangs int) *epochTest {
	d := &epochTest{testQueue: newTestQueue(t), disk: map[string]bool{}}
	limits := SubmitLimits{NewSecret: func() []byte { return []byte(strings.Repeat("k", SecretSize)) }}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k",
		[]jobad.SubmitSpec{{Ad: parseTestAd(t, savingGang), Count: 3 * gangs}}, limits)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.id = ids[0]
	d.sync()
	return d
}

// imageName is the name of an image on the disk.
func imageName(i int, m *eventlog.CheckpointImage) string {
	return fmt.Sprintf("%d.%d.%d", i, m.Attempt, m.Sequence)
}

// sync puts the log on disk. Only then images are deleted.
func (d *epochTest) sync() {
	d.durable = len(d.log)
	for _, m := range d.queue.TakeDroppedImages() {
		delete(d.disk, imageName(m.Task.Index, &m.CheckpointImage))
	}
}

// record applies events, and what follows from them. An epoch is only committed when each
// task of its gang that is not final has an image of its last attempt (G5).
func (d *epochTest) record(events ...eventlog.JobEvent) {
	d.Helper()
	for len(events) > 0 {
		for _, e := range events {
			if e.Type == eventlog.GangSaved {
				for _, r := range e.Ranges {
					for i := r.First; i <= r.Last; i++ {
						s, _ := d.queue.TaskStatus(d.id.Task(i))
						if at, ok := d.homeOf(i); !s.Task.State.IsFinal() && (!ok || at != s.Task.Attempt) {
							panic(fmt.Sprintf("epoch %d without an image of attempt %d of task %d", e.Epoch,
								s.Task.Attempt, i))
						}
					}
				}
			}
			d.apply(e)
		}
		events = d.queue.Followups(d.now)
	}
}

// homeOf returns the attempt of the newest image of a task that is in the log.
func (d *epochTest) homeOf(i int) (at roost.AttemptNumber, ok bool) {
	for _, e := range d.log {
		if e.Type == eventlog.Checkpointed && e.Index == i {
			at, ok = e.Attempt, true
		}
	}
	return at, ok
}

// startGang starts the next gang, and returns its attempts. They go on from the same
// epoch, whose image is returned (G1).
func (d *epochTest) startGang() (attempts []roost.AttemptID, from *eventlog.CheckpointImage) {
	d.Helper()
	requests := d.queue.Requests()
	for _, r := range requests {
		size, _ := d.queue.NextGang(r)
		if size == 0 {
			continue
		}
		events, attempts, ok := d.queue.AssignGang(d.now, r, make([]GangClaim, size))
		if !ok {
			d.Fatal("a gang is ready, and cannot be assigned")
		}
		from = events[0].Image
		for _, e := range events {
			if (e.Image == nil) != (from == nil) ||
				from != nil && (e.Image.Epoch != from.Epoch || e.Image.Wall != from.Wall) {
				panic(fmt.Sprintf("one task goes on from %+v, and another from %+v", from, e.Image))
			}
			if e.Image != nil && !d.disk[imageName(e.Index, e.Image)] {
				panic(fmt.Sprintf("task %d goes on from %+v, which was deleted", e.Index, e.Image))
			}
		}
		d.record(events...)
		return attempts, from
	}
	return nil, nil
}

// save brings the image of a live attempt home. All of a gang that go on together have
// the same work in it.
func (d *epochTest) save(a roost.AttemptID) error {
	d.Helper()
	r := d.queue.jobs[d.id.Seq].records.Own(a.Task.Index)
	m := eventlog.CheckpointImage{Sequence: 1, SelfCheckpoint: true, Time: d.now.UnixNano(), Attempt: a.Attempt,
		Size:     1 << 20,
		CPUUsage: eventlog.CPUUsage{Wall: int64(time.Minute)}}
	if s := r.Checkpoints; s != nil {
		m.Sequence, m.Wall = s.LastSequence+1, s.OriginUsage.Wall+int64(time.Minute)
	}
	d.disk[imageName(a.Task.Index, &m)] = true
	e, err := d.queue.RecordCheckpoint(d.now, a, m)
	if err != nil {
		delete(d.disk, imageName(a.Task.Index, &m))
		return err
	}
	d.record(e)
	return nil
}

// endOne ends a live attempt.
func (d *epochTest) endOne(a roost.AttemptID, x eventlog.AttemptExit) {
	d.Helper()
	e, err := d.queue.RecordEnded(d.now, a, &x)
	if err != nil {
		d.Fatal(err)
	}
	d.record(e)
}

// lose ends an attempt with its machine.
func (d *epochTest) lose(a roost.AttemptID) {
	if e, ok := d.queue.RecordLost(d.now, a, "its machine is gone"); ok {
		d.record(e)
	}
}

// TestGangEpochs plays the epochs of a gang: one is committed, and one is left half. The
// next attempts go on from the committed one.
func TestGangEpochs(t *testing.T) {
	d := newEpochTest(t, 1)
	first, from := d.startGang()
	if len(first) != 3 || from != nil {
		t.Fatalf("it begins with %v from %v", first, from)
	}
	for n, a := range first {
		if err := d.save(a); err != nil {
			t.Fatal(err)
		}
		if e := d.log[len(d.log)-1]; (e.Type == eventlog.GangSaved) != (n == 2) || n == 2 && e.Epoch != 1 {
			t.Fatalf("after %d images: %v %d", n+1, e.Type, e.Epoch)
		}
		if s, _ := d.queue.TaskStatus(d.id.Task(n)); n < 2 && s.Task.ImageCount != 0 {
			t.Errorf("half an epoch counts as %d images", s.Task.ImageCount)
		}
		d.endOne(a, savedExit)
	}
	d.sync()
	second, from := d.startGang()
	if from == nil || from.Epoch != 1 {
		t.Fatalf("it goes on from %+v", from)
	}
	d.queue.TakeVacates()
	if err := errors.Join(d.save(second[0]), d.save(second[1])); err != nil {
		t.Fatal(err)
	}
	d.endOne(second[0], savedExit)
	if v := d.queue.TakeVacates(); len(v) != 2 || !v[0].Checkpoint {
		t.Errorf("when one has saved its state, the others are ended: %+v", v)
	}
	d.lose(second[2])
	if err := d.save(second[1]); !errors.Is(err, roost.Conflict) {
		t.Errorf("an image for an epoch that has failed: %v", err)
	}
	d.endOne(second[1], savedExit)
	d.sync()
	if len(d.disk) != 3 {
		t.Errorf("of the epochs there is left %v", d.disk)
	}
	third, from := d.startGang()
	if from == nil || from.Epoch != 1 {
		t.Fatalf("after half an epoch it goes on from %+v", from)
	}
	for _, a := range third {
		d.endOne(a, eventlog.AttemptExit{})
	}
	if d.sync(); len(d.disk) != 0 {
		t.Errorf("when it has completed, there is left %v", d.disk)
	}
}

// TestGangEpochStatus checks what the status of a job says of committed, half and failed
// epochs.
func TestGangEpochStatus(t *testing.T) {
	d := newEpochTest(t, 2)
	expect := func(want ...GangEpochStatus) {
		t.Helper()
		s, _ := d.queue.Status(d.id.Seq)
		if fmt.Sprintf("%+v", s.Epochs) != fmt.Sprintf("%+v", want) {
			t.Errorf("the status is\n%+v, want\n%+v", s.Epochs, want)
		}
	}
	expect()
	attempts, _ := d.startGang()
	expect(GangEpochStatus{Live: 3, Open: 3})
	for n, a := range attempts {
		if err := d.save(a); err != nil {
			t.Fatal(err)
		}
		d.endOne(a, savedExit)
		if n == 1 {
			expect(GangEpochStatus{GangEpoch: eventlog.GangEpoch{}, Live: 1, Open: 3, Staged: 2})
		}
	}
	first := eventlog.GangEpoch{Saved: 1, Last: 1, Time: d.now.UnixNano(), Size: 3 << 20, Tasks: 3,
		Work: int64(time.Minute)}
	expect(GangEpochStatus{GangEpoch: first, Open: 3})
	d.now = d.now.Add(time.Minute)
	for attempts, _ = d.startGang(); attempts[0].Task.Index != 0; attempts, _ = d.startGang() {
	}
	for _, a := range attempts {
		if err := d.save(a); err != nil {
			t.Fatal(err)
		}
	}
	second := eventlog.GangEpoch{Saved: 2, Last: 2, Time: d.now.UnixNano(), Size: 3 << 20, Tasks: 3,
		Work: int64(2 * time.Minute), From: 1}
	if s, _ := d.queue.TaskStatus(d.id.Task(2)); len(s.Epochs) != 1 || s.Epochs[0].GangEpoch != second ||
		s.Epochs[0].Origin != 1 {
		t.Errorf("of one task the status is %+v, want %+v", s.Epochs, second)
	}
	if s, _ := d.queue.TaskStatus(d.id.Task(5)); len(s.Epochs) > 1 || len(s.Epochs) == 1 && s.Epochs[0].Last != 0 {
		t.Errorf("of a task of the other gang the status is %+v", s.Epochs)
	}
	d.lose(attempts[1])
	s, _ := d.queue.TaskStatus(d.id.Task(0))
	if second.Failed = true; len(s.Epochs) != 1 || s.Epochs[0].GangEpoch != second || s.Epochs[0].Live != 2 {
		t.Errorf("after a loss the status is %+v, want %+v", s.Epochs, second)
	}
}

// TestGangSignals checks that the tasks of a gang are asked together to save their state.
// That is from time to time, by a user, and when one of them has to leave.
func TestGangSignals(t *testing.T) {
	d := newEpochTest(t, 2)
	run := func() (attempts []roost.AttemptID) {
		attempts, _ = d.startGang()
		for _, a := range attempts {
			e, _ := d.queue.RecordStarted(d.now, a)
			d.record(e)
		}
		return attempts
	}
	first := run()
	target := TaskSelector{Job: d.id, Ranges: []eventlog.IndexRange{{First: 1, Last: 1}}}
	if asked, err := d.queue.CheckpointTargets(d.now, alice, target); err != nil || len(asked) != 3 {
		t.Fatalf("for one task are asked %v, %v", asked, err)
	}
	d.now = d.now.Add(59 * time.Second)
	if asked := GangsToSave(d.queue, d.now); len(asked) != 0 {
		t.Fatalf("too early are asked %v", asked)
	}
	d.now = d.now.Add(time.Second)
	if asked := GangsToSave(d.queue, d.now); len(asked) != 3 {
		t.Fatalf("in time are asked %v", asked)
	}
	second := run()
	if p, err := d.queue.Program(second[0]); err != nil || p.Checkpoint == nil || p.Checkpoint.Interval >= 0 {
		t.Errorf("a machine alone is to ask every %+v, %v", p.Checkpoint, err)
	}
	NoteLeaving(d.queue, second[1])
	NoteLeaving(d.queue, second[1])
	if v := d.queue.TakeVacates(); len(v) != 2 || v[0].Attempt != second[0] || !v[0].Checkpoint ||
		v[1].Attempt != second[2] {
		t.Errorf("with one that leaves, the others: %+v", v)
	}
	if asked := GangsToSave(d.queue, d.now.Add(time.Hour)); len(asked) != 3 || asked[0] != first[0] {
		t.Errorf("while one leaves are asked %v", asked)
	}
	d.lose(first[0])
	if v := d.queue.TakeVacates(); len(v) != 2 || v[0].Checkpoint {
		t.Errorf("where one is lost, the others save in vain: %+v", v)
	}
}

// TestGangSavedRefused checks what cannot be saved together.
func TestGangSavedRefused(t *testing.T) {
	for _, ad := range []string{`GangSize = 2; CheckpointSelf = true; CheckpointSignal = "USR2"`,
		`GangSize = 2; GangLed = true; CheckpointSelf = true; CheckpointExitCode = 85`} {
		if _, err := gangQueue(t, ad, 2); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: %v", ad, err)
		}
	}
	d := newEpochTest(t, 1)
	first, _ := d.startGang()
	_, err := d.queue.RecordCheckpoint(d.now, first[0], eventlog.CheckpointImage{Sequence: 1})
	if !errors.Is(err, roost.Invalid) {
		t.Errorf("an image of processes: %v", err)
	}
}

// randomStep does something to the gangs.
func (d *epochTest) randomStep(rng *rand.Rand) {
	d.now = d.now.Add(time.Second)
	var live []roost.AttemptID
	for _, a := range d.queue.ActiveAttempts() {
		live = append(live, a.Attempt)
	}
	target := TaskSelector{Job: d.id, Ranges: []eventlog.IndexRange{{First: rng.IntN(6), Last: 5}}}
	var events []eventlog.JobEvent
	switch n := rng.IntN(40); {
	case n < 12:
		d.startGang()
	case n < 34 && len(live) > 0:
		a := live[rng.IntN(len(live))]
		if stagedImage(d.queue.jobs[d.id.Seq], a.Task.Index) == nil && rng.IntN(8) > 0 {
			d.save(a)
			return
		}
		d.endRandom(rng, a)
	case n == 34:
		events, _ = d.queue.HoldTasks(d.now, alice, target, "")
	case n == 35 || n == 36:
		target.Ranges = nil
		events, _ = d.queue.ReleaseTasks(d.now, alice, target)
	case n == 37:
		events, _ = d.queue.RerunTasks(d.now, alice, target, false)
	case n == 38:
		target.Ranges = nil
		events, _ = d.queue.RetryTasks(d.now, alice, target)
	case n == 39:
		i := rng.IntN(6)
		if r := d.queue.jobs[d.id.Seq].records.Get(i); r.NewestImage() != nil {
			e, _ := d.queue.RejectCheckpoint(d.now, d.id.Task(i), r.NewestImage().Sequence, "it is damaged")
			events = append(events, e)
		}
	}
	d.record(events...)
}

// endRandom ends an attempt in some way.
func (d *epochTest) endRandom(rng *rand.Rand, a roost.AttemptID) {
	if stagedImage(d.queue.jobs[d.id.Seq], a.Task.Index) != nil && rng.IntN(8) > 0 {
		x := savedExit
		x.Cause = []eventlog.ExitCause{eventlog.CauseExited, eventlog.CauseVacate, eventlog.CausePreemption,
			eventlog.CauseWalltime}[rng.IntN(4)]
		d.endOne(a, x)
		return
	}
	switch rng.IntN(6) {
	case 0:
		d.lose(a)
	case 1:
		d.endOne(a, eventlog.AttemptExit{Cause: eventlog.CauseRestore})
	case 2:
		d.endOne(a, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: sigkill})
	case 3:
		d.endOne(a, eventlog.AttemptExit{Code: 1})
	case 4:
		d.endOne(a, eventlog.AttemptExit{Cause: eventlog.CauseMachine})
	case 5:
		d.endOne(a, eventlog.AttemptExit{})
	}
}

// crash restarts the schedd from its log or from snapshots. What was not yet on disk of
// the log may be missing. All images that it knows of are there (G3).
func (d *epochTest) crash(rng *rand.Rand) {
	d.checkSame(d.restoredCopy())
	if rng.IntN(2) == 0 {
		cut := d.durable + rng.IntN(len(d.log)-d.durable+1)
		d.log, d.durable = d.log[:cut], cut
		d.queue = New("h")
		for _, e := range d.log {
			d.queue.Apply(e)
		}
	} else {
		d.sync()
		d.queue = d.restoredCopy()
	}
	d.queue.Check()
	named := map[string]bool{}
	d.queue.EachImage(func(m StoredImage) {
		name := imageName(m.Task.Index, &m.CheckpointImage)
		if named[name] = true; !d.disk[name] {
			panic("the queue names image " + name + ", which was deleted")
		}
	})
	d.disk = named
	d.queue.TakeDroppedImages()
	d.queue.RepairGangs()
	d.record(d.queue.Followups(d.now)...)
}

// runRandomEpochs plays random epochs, and returns how many were committed and from how
// many a gang went on.
func runRandomEpochs(t testing.TB, seed uint64) (saved int) {
	d, rng := newEpochTest(t, 2), rand.New(rand.NewPCG(seed, 11))
	for range 250 {
		d.randomStep(rng)
		if rng.IntN(5) == 0 {
			d.sync()
		}
		if rng.IntN(25) == 0 {
			d.crash(rng)
		}
	}
	for _, e := range d.log {
		if e.Type == eventlog.GangSaved {
			saved++
		}
	}
	return saved
}

// TestRandomEpochs checks that a gang goes on from one committed epoch whatever happens,
// and that no half epoch counts.
func TestRandomEpochs(t *testing.T) {
	saved := 0
	for seed := range uint64(30) {
		saved += runRandomEpochs(t, seed)
	}
	if saved < 100 {
		t.Errorf("%d epochs were committed", saved)
	}
}
