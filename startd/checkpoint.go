package startd

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter"
)

// Why a checkpoint is taken, as it stands in CheckpointTaken.
const (
	periodic   = "periodic"
	onVacate   = "vacate"
	atWalltime = "walltime"
)

// More that a hand is told.
type (
	// save asks for a checkpoint.
	save struct {
		id  roost.AttemptID
		why string
	}
	// due says that the time of a checkpoint may have come.
	due struct{ id roost.AttemptID }
	// look asks whether an attempt can be dumped at all.
	look struct{ id roost.AttemptID }
	// saved tells how a checkpoint went.
	saved struct {
		id     roost.AttemptID
		taken  *wire.CheckpointTaken
		result criu.DumpResult
		ended  bool // of an attempt that has saved itself and ended
	}
	// kept is the schedd's word on an image.
	kept struct {
		id       roost.AttemptID
		sequence uint64
	}
	// dumped tells that an attempt does not stand still for a checkpoint any more, the image of which is yet to be made.
	dumped struct{ id roost.AttemptID }
	// freeze suspends an attempt, or lets it go on.
	freeze struct {
		id     roost.AttemptID
		frozen bool
	}
	// retell asks to say again what the schedd may not have heard.
	retell struct{}
)

// saving is what a hand knows of the checkpoints of its present attempt. The zero value is that of one of which none are taken.
type saving struct {
	policy *wire.CheckpointPolicy
	can    bool         // one of its processes could be taken, when that was tried or looked at last
	good   time.Time    // when the last good one was taken; zero: none was
	pid    int          // of the box's first process, 0 before it runs
	began  slot.Instant // when it ran
	last   slot.Instant // when the last checkpoint ended, or the attempt began
	cost   time.Duration
	failed int // in a row
	timer  *time.Timer
	cancel context.CancelFunc // of the one that is being taken; nil: none is
	why    string             // it is taken
	asked  bool               // another was asked for meanwhile
	leave  *vacate            // to be done when it is taken
	unkept *wire.CheckpointTaken
	status *wire.ExitStatus // the attempt has ended like this, and what it has saved itself is being packed
	cut    bool             // it was not given time to save anything
	still  bool             // it is suspended
	stood  bool             // it was when the checkpoint that is being taken began
	absent bool             // the image to go on from is on its way here from a checkpoint server
	begun  bool             // everything else is there
}

// savable says why no image of the attempt can be taken; empty when one can.
func (h *hand) savable(a *attempt) string {
	s := &a.saving
	switch {
	case s.policy == nil:
		return "the job allows no checkpoints"
	case a.savesItself():
		return "the program saves its own state, and its job names no signal that asks for it"
	case !h.m.criu.Works:
		return "this machine takes none: " + cmp.Or(h.m.criu.Why, "it has no CRIU")
	case !a.record.Boxed:
		return "it does not run in a sandbox"
	case s.pid == 0 || a.exited != nil:
		return "it does not run"
	}
	return ""
}

// startSaving begins to think of checkpoints: the attempt runs.
func (h *hand) startSaving(a *attempt, pid int) {
	s := &a.saving
	if a.record.Stopped { // the starter stops what is stopped, and lets all of it go on
		h.starter.Suspend(a.ref)
		h.starter.Resume(a.ref)
		a.record.Stopped = false
		h.note(a)
	}
	if s.pid != 0 {
		return
	}
	s.pid, s.began = pid, boottime()
	s.last = s.began
	if s.policy == nil {
		return
	}
	if a.savesItself() {
		s.cost = ownCost
		h.tellSaves(a)
	}
	time.AfterFunc(firstLookAt, func() { h.box.put(look{a.id}) })
	h.nextSave(a)
}

// firstLookAt is how soon after its start an attempt is looked at, whether it can be dumped: by then most programs have opened what they need.
const firstLookAt = 2 * time.Second

// dumpable finds out whether the attempt can be dumped, and has that told.
func (h *hand) dumpable(a *attempt) {
	if a.savesItself() {
		return
	}
	why := h.savable(a)
	if why == "" {
		if f := criu.Probe(a.saving.pid); f != nil {
			why = f.Reason
		}
	}
	h.m.meters.setDumpable(h.id, a.id, cmp.Or(why, "yes"))
	a.saving.can = why == ""
	h.tellSaves(a)
}

// nextSave sets the timer to the next occasion: the interval's end, or a while before the walltime's.
func (h *hand) nextSave(a *attempt) {
	s := &a.saving
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if a.savesItself() && s.policy.GetSignal() == 0 || !a.savesItself() && h.savable(a) != "" {
		return
	}
	at, ok := h.occasion(a)
	if !ok {
		return
	}
	s.timer = time.AfterFunc(max(at-boottime(), 0), func() { h.box.put(due{a.id}) })
}

// occasion is when the next checkpoint is to be taken.
func (h *hand) occasion(a *attempt) (at slot.Instant, ok bool) {
	s := &a.saving
	since, ok := checkpoint.Due(time.Duration(s.policy.GetIntervalNs()), s.last-s.began, s.cost, h.m.reliability.mtbf(), s.failed)
	at = s.began + since
	if limit := a.record.Walltime; s.policy.GetBeforeWalltime() && limit > 0 {
		if before := s.began + limit - beforeEnd(limit, s.cost); s.last < before && (!ok || before < at) {
			return before, true
		}
	}
	return at, ok
}

// beforeEnd is how long before the end of its walltime a task is saved: twice what the last checkpoint took and half a minute, but never more
// than a tenth of the whole.
func beforeEnd(walltime, cost time.Duration) time.Duration {
	return min(2*cost+30*time.Second, walltime/10)
}

// saveDue takes a checkpoint if its time has come.
func (h *hand) saveDue(a *attempt) {
	at, ok := h.occasion(a)
	if !ok || at > boottime()+time.Second {
		h.nextSave(a)
		return
	}
	why := periodic
	if limit := a.record.Walltime; a.saving.policy.GetBeforeWalltime() && limit > 0 &&
		boottime()+time.Second >= a.saving.began+limit-beforeEnd(limit, a.saving.cost) {
		why = atWalltime
	}
	h.save(a, why)
}

// save takes a checkpoint, or says why not. While one is being taken, another that is asked for waits.
func (h *hand) save(a *attempt, why string) {
	s := &a.saving
	if held := h.still.why(); held != "" && why != onVacate { // it is saved when it leaves
		if why == asked {
			h.tellTaken(&wire.CheckpointTaken{Attempt: reference(a.id), Reason: why, Error: errOwner.Error() + ": " + held})
		}
		return
	}
	if a.savesItself() && s.policy.GetSignal() != 0 && s.pid != 0 && h.starter != nil && a.exited == nil && s.status == nil {
		h.askProgram(a, why)
		return
	}
	if cannot := h.savable(a); cannot != "" {
		h.tellTaken(&wire.CheckpointTaken{Attempt: reference(a.id), Error: cannot, Reason: why})
		return
	}
	if s.cancel != nil {
		s.asked = s.asked || why != periodic && why != onVacate
		return
	}
	if a.enter() != nil {
		return
	}
	ctx, stop := context.WithCancelCause(a.ctx)
	cancel := func() { stop(nil) }
	if why == onVacate {
		timed, expire := context.WithTimeout(ctx, h.vacateTime())
		ctx, cancel = timed, func() { expire(); stop(nil) }
	}
	if err := h.still.saving(stop, why == onVacate); err != nil { // just now
		cancel()
		a.leave()
		return
	}
	s.cancel, s.why, s.stood = cancel, why, s.still
	job := h.dumpJob(a, why)
	job.done = func() {
		h.still.saved()
		h.box.put(dumped{a.id})
	}
	go func() {
		defer a.leave()
		defer cancel()
		taken, result := h.m.dump(ctx, job)
		h.still.saved()
		h.box.put(saved{a.id, taken, result, false})
	}()
}

// saved takes in how a checkpoint went.
func (h *hand) saved(o saved) {
	if o.ended {
		h.m.leaving.Add(-1)
	}
	if !h.is(o.id) {
		h.m.forgetImage(h.file.Schedd, o.taken)
		return
	}
	a := h.now
	s := &a.saving
	s.cancel, s.last = nil, boottime()
	if o.taken.GetError() == "" {
		s.failed, s.cost = 0, o.result.Frozen
		s.good, s.can = time.Unix(0, o.taken.GetImage().GetTime()), true
		h.tellSaves(a)
		if old := s.unkept; old != nil {
			h.m.forgetImage(h.file.Schedd, old)
		}
		s.unkept = o.taken
		a.record.Next, a.record.Unkept = o.taken.GetImage().GetSequence()+1, encode(o.taken)
		h.note(a)
	} else {
		s.failed++
		h.m.log.Info("no checkpoint", "attempt", a.label(), "why", o.taken.GetError())
	}
	if a.exited == nil {
		h.tellTaken(o.taken)
	}
	if status := s.status; status != nil {
		s.status = nil
		h.exit(a, status)
		return
	}
	h.settleStill(a)
	if v := s.leave; v != nil {
		if s.why != onVacate && !v.fast { // it may have run on since
			h.saveLast(a)
			return
		}
		h.unleave(a)
		h.leave(a, *v, o.taken.GetError() == "")
		return
	}
	if s.asked {
		s.asked = false
		h.save(a, asked)
		return
	}
	h.nextSave(a)
}

// settleStill is for a checkpoint during which an attempt was suspended, or resumed: whoever takes one lets go on what he did not find standing
// still, and resuming waited.
func (h *hand) settleStill(a *attempt) {
	s := &a.saving
	if a.exited != nil || h.starter == nil {
		return
	}
	switch {
	case s.leave != nil || s.still && !s.stood:
		h.suspend(a)
	case s.stood && !s.still:
		h.starter.Resume(a.ref)
	case !s.still && h.group != nil && h.group.Frozen():
		// The agent of a startd that was killed was still at it: this one found the task standing still, and left it so.
		if err := h.group.Thaw(); err != nil {
			h.m.log.Error("cannot thaw", "attempt", a.label(), "err", err)
		}
	}
}

// asked is the reason of a checkpoint that the submit side wants.
const asked = "asked"

// stopSaving ends what is under way: the attempt has ended.
func (h *hand) stopSaving(a *attempt) {
	s := &a.saving
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.cancel != nil {
		s.cancel()
	}
	h.unleave(a)
}

// keptByThem forgets an image that the submit side has, or does not want.
func (h *hand) keptByThem(a *attempt, sequence uint64) {
	if old := a.saving.unkept; old != nil && old.GetImage().GetSequence() <= sequence {
		h.m.forgetImage(h.file.Schedd, old)
		a.saving.unkept, a.record.Unkept = nil, nil
		h.note(a)
	}
}

func (h *hand) tellTaken(t *wire.CheckpointTaken) { h.m.post(takenNews{h.file.Schedd, t}) }

// note writes the attempt's record again.
func (h *hand) note(a *attempt) {
	if err := writeAttempt(h.attemptFile, &a.record); err != nil {
		h.m.log.Error("cannot write the record of an attempt", "attempt", a.label(), "err", err)
	}
}

// resumeSaving takes over what an earlier startd knew.
func (h *hand) resumeSaving(a *attempt, state starter.State, running bool) {
	s := &a.saving
	if len(a.record.Policy) > 0 {
		s.policy = &wire.CheckpointPolicy{}
		if proto.Unmarshal(a.record.Policy, s.policy) != nil {
			s.policy = nil
		}
	}
	if len(a.record.Unkept) > 0 {
		s.unkept = &wire.CheckpointTaken{}
		if proto.Unmarshal(a.record.Unkept, s.unkept) != nil {
			s.unkept = nil
		} else {
			s.good = time.Unix(0, s.unkept.GetImage().GetTime())
		}
	}
	if running {
		s.still = a.record.Still
		if !s.still && h.starter != nil { // an earlier start may have been about to save it
			h.starter.Resume(a.ref)
			if h.group != nil {
				h.group.Thaw()
			}
		}
		h.startSaving(a, int(state.PID))
		s.began = slot.Instant(state.Since)
	}
}

func encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // a message of ours that cannot be written down
	}
	return b
}

// stageDir is where an attempt's checkpoint is put together.
func (m *machine) stageDir(a *attempt, kind string) string {
	return filepath.Join(m.checkpointsDir(), filepath.Base(a.record.IO)+"."+kind)
}
