package startd

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// hand does the work of one claim, in a goroutine of its own: it keeps the claim's directory, drives the starter, and prepares and cleans up
// after each attempt.
type hand struct {
	m    *machine
	id   slot.ClaimID
	dir  string
	file claimFile
	cred files.Credential
	box  *mailbox[any]

	still       holding       // for the machine's owner
	group       *cgroup.Group // nil: the claim has none
	starter     *starter.Starter
	attemptFile *os.File
	agent       *files.Agent
	base        string                  // directory for the files of its attempts, which the user owns; empty: it is not made yet
	io          bool                    // that for their streams is made
	now         *attempt                // that is on the claim, until it is forgotten
	present     atomic.Pointer[attempt] // now, for transfers
	going       bool                    // dismissed or left: the starter's end is awaited
	keep        bool                    // left
	over        bool
}

func (m *machine) newHand(file claimFile) *hand {
	return &hand{
		m: m, id: slot.ClaimID(file.ID), dir: filepath.Join(m.claimsDir(), slot.ClaimID(file.ID).String()), file: file, box: newMailbox[any](),
	}
}

// run obeys until the claim and its starter are gone.
func (h *hand) run() {
	for !h.over {
		<-h.box.ready
		for _, o := range h.box.take() {
			h.obey(o)
		}
	}
	if h.agent != nil {
		h.m.agents.giveBack(h.cred)
	}
	if h.attemptFile != nil {
		h.attemptFile.Close()
	}
	h.m.post(handGone{h.id})
}

func (h *hand) obey(order any) {
	switch o := order.(type) {
	case makeClaim:
		h.make(o)
	case start:
		h.start(o)
	case settle:
		h.settle(o)
	case squeeze:
		h.squeeze(o)
	case launch:
		if h.is(o.id) && h.now.waits() {
			h.begin(h.now)
		}
	case vacate:
		h.vacate(o)
	case renew:
		if h.starter != nil {
			h.starter.Renew(o.deadline - boottime())
		}
	case forget:
		h.forget(o.id)
	case dismiss:
		h.dismiss(false)
	case leave:
		h.dismiss(true)
	case probe:
		h.probed(o)
	case save:
		if h.is(o.id) {
			h.save(h.now, o.why)
		}
	case due:
		if h.is(o.id) && h.now.exited == nil {
			h.saveDue(h.now)
		}
	case look:
		if h.is(o.id) && h.now.exited == nil {
			h.dumpable(h.now)
		}
	case dumped:
		if h.is(o.id) {
			h.settleStill(h.now)
		}
	case saved:
		h.saved(o)
	case fetched:
		h.fetched(o)
	case kept:
		if h.is(o.id) {
			h.keptByThem(h.now, o.sequence)
		}
	case freeze:
		h.freeze(o)
	case kick:
		if h.is(o.id) && h.now.exited == nil {
			h.kick(h.now, o.signal)
		}
	case limit:
		if h.is(o.id) && h.now.exited == nil {
			h.limit(h.now, o)
		}
	case inscribe:
		if h.is(o.id) && h.now.exited == nil {
			h.m.inscribe(h.now, o)
		}
	case wentOn:
		if h.now != nil && h.now.exited == nil && h.now.saving.cancel == nil {
			h.nextSave(h.now)
		}
	case shrink:
		h.shrink()
	case retell:
		if h.now != nil && h.now.exited == nil && h.now.saving.unkept != nil {
			h.tellTaken(h.now.saving.unkept)
		}
	case prologued:
		h.prologued(o)
	case epilogued:
		h.epilogued(o)
	case said:
		h.heard(o.event)
	case overdue:
		h.endOverdue(o.id)
	}
}

func (h *hand) is(id roost.AttemptID) bool { return h.now != nil && h.now.id == id }

// make writes the claim down, says so, and only then spends the time for a starter: until the schedd's first attempt is here it is ready.
func (h *hand) make(o makeClaim) {
	h.cred = h.m.accounts.credential(&h.file)
	err := os.Mkdir(h.dir, 0o700)
	if err == nil {
		err = writeClaimFile(h.dir, h.file)
	}
	if err == nil {
		h.attemptFile, err = os.OpenFile(filepath.Join(h.dir, "attempt"), os.O_WRONLY|os.O_CREATE, 0o600)
	}
	if err != nil {
		h.m.post(unmade{h.id, "the claim could not be written down: " + err.Error()})
		return
	}
	fault.Point(fault.StartdAfterClaim)
	h.m.post(made{h.id})
	fault.Point(fault.StartdBeforeStarter)
	if h.group, err = h.m.groups.make(h.file, h.openable()); err == nil {
		join, tasks := h.join()
		h.starter, err = starter.Spawn(starter.Options{
			Binary: h.m.starterPath, Dir: h.dir, Lease: o.lease, Events: func(e starter.Event) { h.box.put(said{e}) }, Join: join, TaskGroup: tasks,
		})
	}
	if err != nil {
		h.m.log.Error("no starter", "claim", h.id, "err", err)
		h.m.post(unmade{h.id, err.Error()})
		return
	}
	h.still.equip(h.group, h.starter, h.m.boxes)
	fault.Point(fault.StartdAfterStarter)
}

// settle writes down what the claim holds now. Should that not succeed, a restart finds a claim that waits, or one that holds what it held
// before; the attempt that is about to start is lost then, and only then.
func (h *hand) settle(o settle) {
	lent := h.file.reclaimed()
	h.file.Placed, h.file.Cores = &o.placed, o.cores
	if err := writeClaimFile(h.dir, h.file); err != nil {
		h.m.log.Error("what a claim holds cannot be written down", "claim", h.id, "err", err)
	}
	if h.group != nil && (h.file.Cores != nil || h.file.reclaimed() != lent) {
		if err := h.group.Set(limitsOf(h.file, h.m.own)); err != nil {
			h.m.log.Error("a claim goes with the limits of its last turn", "claim", h.id, "err", err)
		}
	}
}

func (h *hand) start(o start) {
	a := newAttempt(o.id, h.cred, o.program)
	a.disk = h.file.Resources.Disk
	h.now = a
	err := h.prepare(a)
	a.holds = o.hold && err == nil
	h.present.Store(a)
	if err != nil {
		h.cannot(a, err)
		return
	}
	h.fetch(a)
	if o.hold {
		h.m.post(inputReady{h.id, a.id, a.record.Scratch})
		return
	}
	h.begin(a)
}

func (h *hand) begin(a *attempt) {
	if a.saving.absent {
		a.saving.begun = true // fetched follows
		return
	}
	if h.prologue(a) {
		return // prologued follows
	}
	if err := h.launch(a); err != nil {
		h.cannot(a, err)
		return
	}
	h.payOwed(a)
}

// errJob marks what is the job's fault, and not the machine's.
var errJob = errors.New("the job cannot run here")

// cannot ends an attempt that the machine could not start.
func (h *hand) cannot(a *attempt, err error) {
	h.m.log.Warn("cannot start", "attempt", a.label(), "err", err)
	cause := wire.Cause_CAUSE_MACHINE
	switch {
	case errors.Is(err, errOwner):
		cause = wire.Cause_CAUSE_VACATED
	case errors.Is(err, errRestore):
		cause = wire.Cause_CAUSE_RESTORE
	case errors.Is(err, errJob):
		cause = wire.Cause_CAUSE_LAUNCH
	}
	h.exit(a, &wire.ExitStatus{Cause: cause, Reason: err.Error(), OwnFiles: errors.Is(err, errElsewhere)})
}

func (h *hand) vacate(o vacate) {
	if !h.is(o.id) || h.now.exited != nil {
		return
	}
	if h.now.saving.status != nil {
		h.hurry(h.now, o)
		return
	}
	if h.now.waits() || h.starter == nil {
		h.exit(h.now, &wire.ExitStatus{Cause: o.cause, Reason: o.reason})
		return
	}
	if !h.saveAndLeave(h.now, o) {
		h.stop(h.now, o)
	}
}

// stop ends an attempt that runs. What stands still for the machine's owner does not run again for that.
func (h *hand) stop(a *attempt, o vacate) {
	notice := a.record.Notice
	o.fast = o.fast || h.still.why() != ""
	if o.notice > 0 {
		notice = min(notice, o.notice)
	}
	a.saving.cut = a.saving.cut || o.fast || notice <= 0
	stop := starter.Stop{Attempt: a.ref, Cause: proto.Cause(o.cause), Fast: o.fast, Notice: int64(notice), Reason: o.reason}
	if a.savesItself() && a.keepsWork(o.cause) {
		stop.Signal = uint32(a.saving.policy.GetSignal())
	}
	h.starter.Vacate(stop)
	if o.cause == wire.Cause_CAUSE_LEASE {
		a.leaseOver = o.reason
		time.AfterFunc(endsWithin, func() { h.box.put(overdue{a.id}) })
	}
}

// freeze suspends an attempt, or lets it go on. One that is on its way out is left alone, and one that is being saved goes on when it is.
func (h *hand) freeze(o freeze) {
	if !h.is(o.id) || h.starter == nil || h.now.exited != nil || h.now.saving.leave != nil {
		return
	}
	h.now.saving.still, h.now.record.Still = o.frozen, o.frozen
	h.note(h.now)
	switch {
	case o.frozen:
		h.suspend(h.now)
	case h.now.saving.cancel == nil:
		h.starter.Resume(h.now.ref)
	}
}

// suspend stops the task at once by its group: a busy task shares its time with its starter, which gets to it later, and only stops the walltime then. Without
// a group the starter does both.
func (h *hand) suspend(a *attempt) {
	if h.standStill(a) {
		h.starter.Stood(a.ref)
	} else {
		h.starter.Suspend(a.ref)
	}
}

// standStill freezes the task's group, and reports whether it did.
func (h *hand) standStill(a *attempt) bool {
	if h.group == nil {
		return false
	}
	if a.record.Boxed && a.saving.pid != 0 {
		h.detach(a)
	}
	if err := h.group.Freeze(); err != nil {
		h.m.log.Warn("cannot freeze", "claim", h.id, "err", err)
		return false
	}
	return true
}

// detach has the first process of the box hear, before it is frozen, that it is to live on without its parent. If it is held it is let out for that.
func (h *hand) detach(a *attempt) {
	if !h.still.held() {
		criu.Detach(a.saving.pid)
		return
	}
	err := h.group.Apart(a.saving.pid, func() { criu.Detach(a.saving.pid) })
	if err != nil {
		h.m.log.Error("the first process of a task cannot be told that it is saved", "attempt", a.label(), "err", err)
	}
	if errors.Is(err, roost.Conflict) { // it must not run outside
		h.group.Clear()
	}
}

func (h *hand) forget(id roost.AttemptID) {
	if !h.is(id) {
		return
	}
	a := h.now
	h.now = nil
	h.present.Store(nil)
	if h.starter != nil {
		h.starter.Forget(a.ref)
	}
	h.clean(a)
}

// dismiss ends the starter; the rest happens when it is gone.
func (h *hand) dismiss(keep bool) {
	if h.going {
		return
	}
	h.going, h.keep = true, keep
	if h.starter == nil || h.starter.Release() != nil {
		h.vanish()
	}
}

// vanish ends the hand.
func (h *hand) vanish() {
	if h.over {
		return
	}
	h.over = true
	h.ungroup() // its starter is gone
	if h.keep {
		if h.now != nil {
			h.now.close()
		}
		return
	}
	if h.now != nil {
		h.clean(h.now)
	}
	h.removeFiles()
	if err := os.RemoveAll(h.dir); err != nil {
		h.m.log.Warn("cannot remove a claim", "claim", h.id, "err", err)
	}
}

func (h *hand) heard(event starter.Event) {
	switch e := event.(type) {
	case starter.Started:
		h.still.landed()
		if h.now != nil && h.now.ref == e.Attempt {
			h.m.post(started{h.id, h.now.id, int64(e.PID)})
			h.watchGPUs(h.now.id)
			h.startSaving(h.now, e.PID)
			h.expectTerminal(h.now)
			h.m.opened(h.now)
		}
	case starter.Exited:
		h.still.landed()
		if h.now != nil && h.now.ref == e.Attempt {
			status := h.now.status(e.Exit)
			if e.Exit.Step == proto.FromImage && status.Cause == wire.Cause_CAUSE_RESTORE {
				status.Reason, status.ForgedImage = h.m.restoreFailure(h.now)
			}
			h.finished(h.now, status)
		}
	case starter.Gone:
		h.gone(e)
	}
}

// gone takes in the death of the starter. What its task had forked may still live: it is found by its mark.
func (h *hand) gone(e starter.Gone) {
	h.starter = nil
	h.still.unequip()
	a := h.now
	if a != nil && a.exited == nil && a.saving.status == nil && !a.waits() {
		if h.group != nil {
			h.group.Clear()
		}
		if _, err := starter.Sweep(h.file.Cookie, h.m.boxPath(h.id)); err != nil {
			h.m.log.Error("processes are left", "claim", h.id, "err", err)
		}
		switch {
		case e.Last.Phase == proto.Ended && e.Last.Attempt == a.ref:
			h.finished(a, a.status(e.Last.Exit))
		case a.leaseOver != "": // the kernel ends a starter that is late with that, and the machine is not at fault
			h.exit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_LEASE, Reason: a.leaseOver})
		default:
			h.exit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE, Reason: "its starter died, and nobody knows how it ended"})
		}
	}
	if h.going {
		h.vanish()
		return
	}
	reason := "its starter has ended"
	if e.Err != nil && !errors.Is(e.Err, starter.ErrGone) {
		reason = e.Err.Error()
	}
	h.m.post(unmade{h.id, reason})
}

// userAgent is the claim's share in the agent of its user.
func (h *hand) userAgent() (*files.Agent, error) {
	if h.agent != nil {
		return h.agent, nil
	}
	agent, err := h.m.agents.take(h.cred)
	if err == nil {
		h.agent = agent
	}
	return agent, err
}
