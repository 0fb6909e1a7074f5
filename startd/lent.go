package startd

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// lent is what the loop knows of the owner of its machine.
type lent struct {
	core    *owner.Core
	wake    slot.Instant            // when it wants to be asked again
	stale   bool                    // claims have changed since it was told of them
	fresh   bool                    // the guard has spoken since it was asked
	synced  bool                    // what an earlier start, or the guard, has left standing was looked at
	still   map[slot.ClaimID]string // claims that stand still, and why
	struck  map[slot.ClaimID]bool   // claims that were told to end at once
	version uint64                  // of the core that was advertised
	why     string                  // no claims are given; empty: they are

	signs   *wire.GuardSigns // last heard
	rules   ruleFile         // of the owner's, as it was read
	acted   uint64           // signs that were acted on
	batch   int              // of claims that are being stopped, numbered
	pending bool             // they do not all stand still yet
	began   time.Time        // the stopping of the first that has not
}

// stood says that everything of a batch stands still, or will not soon.
type stood struct {
	batch int
	took  time.Duration
	left  int // that do not
}

// newLent begins to follow the owner of a machine; nil on one that has none.
func (m *machine) newLent(ad *classad.Ad) (*lent, error) {
	if !m.own.Lent() {
		return nil, nil
	}
	policy, err := m.own.OwnerPolicy()
	if err != nil {
		return nil, fmt.Errorf("startd %s: %w", m.own.Name, err)
	}
	o := &lent{still: make(map[slot.ClaimID]string), struck: make(map[slot.ClaimID]bool), stale: true}
	o.core = owner.New(owner.Options{Policy: policy, Name: m.own.Name, Ad: ad})
	return o, nil
}

// signed takes in what the guard sees.
func (l *loop) signed(s *wire.GuardSigns) {
	o, now := l.lent, boottime()
	if o.signs == nil || o.rules.version != s.GetOwnerRules() {
		o.rules.version = s.GetOwnerRules()
		l.readRules(now)
	}
	if l.frozeOurs(s) {
		o.synced = false
	}
	o.signs, o.fresh = s, true
	o.core.Observe(now, time.Now(), signsOf(s))
}

// guardLost notes that the guard is not heard of.
func (l *loop) guardLost(n guardLost) {
	if l.m.own.Guarded() {
		l.m.log.Error("nothing is heard of the guard of this machine: it is taken to be in use", "address", l.m.node.GuardAddress(), "why", n.why,
			"cure", "roost doctor says how it is; roost guard starts it")
	}
	l.lent.core.GuardLost(boottime())
	l.lent.fresh = true
}

// frozeOurs reports whether the guard has stopped claims of ours itself: they are looked at as those that an earlier start has left.
func (l *loop) frozeOurs(s *wire.GuardSigns) bool {
	if len(s.GetFrozen()) == 0 {
		return false
	}
	theirs := make(map[string]bool, len(s.GetFrozen()))
	for _, dir := range s.GetFrozen() {
		theirs[dir] = true
	}
	for _, h := range l.hands {
		if theirs[h.still.directory()] {
			return true
		}
	}
	return false
}

func signsOf(s *wire.GuardSigns) owner.Signs {
	to := owner.Signs{
		Input: time.Duration(s.GetInput()), Console: time.Duration(s.GetConsoleInput()), Busy: s.GetBusy(), ForeignCPU: s.GetForeignCpu(),
		ForeignSince: time.Duration(s.GetForeignBusySince()), MemoryPressure: s.GetMemoryPressure(), CPUPressure: s.GetCpuPressure(),
		MemoryAvailable: roost.Bytes(s.GetMemoryAvailable()), OnBattery: s.GetOnBattery(), Hot: s.GetHot(), Game: s.GetGame(), Asleep: s.GetAsleep(),
		Load: loadAverage(),
	}
	if p := s.GetPause(); p != nil {
		to.Pause = &owner.Pause{By: p.GetBy(), Reason: p.GetReason()}
		if p.GetUntil() != 0 {
			to.Pause.Until = time.Unix(0, p.GetUntil())
		}
	}
	return to
}

// attend asks whether tasks have to stand still, or go, if something has changed by which that could be decided.
func (l *loop) attend() slot.Instant {
	o, now := l.lent, boottime()
	if !o.stale && !o.fresh && now < o.wake {
		return o.wake
	}
	if o.stale {
		o.core.Tenants(now, l.tenants())
	}
	if !o.pending {
		o.began = time.Now()
	}
	var orders []owner.Order
	orders, o.wake = o.core.Todo(now)
	told := o.fresh
	heard := told && o.signs != nil
	o.stale, o.fresh = false, false
	stops := l.obeyAll(orders)
	if told && !o.synced {
		o.synced = true
		l.sync()
		stops = true
	}
	willing, why := o.core.Willing()
	if willing {
		why = ""
	}
	news := why != o.why
	o.why = why
	l.core.Lend(l.m.ofOwner(why))
	if l.ownerActive() {
		l.core.HandBack(l.m.ofOwner(why))
	}
	if stops {
		l.awaitStill()
	} else if heard && !o.pending {
		o.acted = o.signs.GetSequence()
	}
	if heard || stops || news || len(orders) > 0 {
		l.reportTo()
	}
	return o.wake
}

// ownerActive reports whether the machine is its owner's at this moment, and not only not lent yet.
func (l *loop) ownerActive() bool {
	ad := classad.New()
	l.lent.core.Describe(ad)
	busy, _ := ad.Bool(roost.AttrOwnerBusy)
	return busy
}

// sync makes all claims as they are wanted to be, whatever earlier starts and the guard did with them.
func (l *loop) sync() {
	for id, h := range l.hands {
		l.hold(h, l.lent.still[id])
	}
}

func (l *loop) hold(h *hand, why string) {
	if err := h.still.want(why); err != nil {
		l.m.log.Error("a claim cannot be stopped for the machine's owner", "claim", h.id, "err", err)
	}
}

// tenants are the claims in the owner's words.
func (l *loop) tenants() []owner.Tenant {
	all := l.core.All()
	to := make([]owner.Tenant, 0, len(all))
	for _, c := range all {
		if !c.Holds() {
			continue
		}
		t := owner.Tenant{
			ID: uint64(c.ID), Began: c.Began, GPUs: int(c.Resources.GPUs), Savable: l.m.meters.saved(c).Can,
			Running: c.State == slot.Busy || c.State == slot.Vacating,
		}
		if t.Running {
			t.Job = jobAd(c)
		}
		if u := l.m.meters.find(c.ID, c.Attempt); u != nil {
			u.mu.Lock()
			t.Memory = roost.Bytes(u.last.GetMemory())
			u.mu.Unlock()
		}
		to = append(to, t)
	}
	for id := range l.lent.still {
		if _, ok := l.core.Claim(id); !ok {
			delete(l.lent.still, id)
		}
	}
	for id := range l.lent.struck {
		if _, ok := l.core.Claim(id); !ok {
			delete(l.lent.struck, id)
		}
	}
	return to
}

// jobAd is what the machine knows of the job on a claim: startd/owner knows the names.
func jobAd(c *slot.Claim) *classad.Ad {
	ad := classad.New()
	ad.SetString(roost.AttrOwner, c.Owner)
	ad.SetString(roost.AttrGroup, c.About.Group)
	ad.SetString(roost.AttrBand, c.About.Band.String())
	ad.SetString(roost.AttrAppClass, c.Class.String())
	ad.SetString(roost.AttrJob, c.Attempt.Task.String())
	ad.SetInt(roost.AttrRequestMemory, int64(c.Resources.Memory/roost.MiB))
	ad.SetReal(roost.AttrRequestCpus, c.Resources.CPU.Cores())
	ad.SetInt(roost.AttrRequestGpus, int64(c.Resources.GPUs))
	if c.Walltime > 0 {
		ad.SetInt(roost.AttrWalltime, int64(c.Walltime/time.Second))
	}
	return ad
}

// ofOwner says in words that mean something elsewhere why the machine is not lent.
func (m *machine) ofOwner(why string) string {
	const active = "its owner is active"
	switch rest, ok := strings.CutPrefix(why, active); {
	case why == "":
		return ""
	case ok:
		return "the owner of " + m.own.Name + " is back" + rest
	}
	return m.own.Name + " is not lent: " + why
}

// accepts says why the policy of the machine does not take a job; nil when it does. Whether it takes any the books know.
func (l *loop) accepts(wish *slot.ClaimRequest) error {
	job := wish.Ad
	if job == nil {
		job = classad.New()
	}
	if willing, _ := l.lent.core.Willing(); !willing {
		return nil
	}
	if ok, why := l.lent.core.Accepts(job); !ok {
		return fmt.Errorf("%w: %s", roost.Conflict, why)
	}
	return nil
}
