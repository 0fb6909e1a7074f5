package startd

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/lend"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// lent is what the loop knows of the owner of its machine.
type lent struct {
	*lend.Lender

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

// newLent begins to follow the owner of the machine; nil on one that has none.
func (l *loop) newLent() (*lent, error) {
	m := l.m
	if !m.own.Lent() {
		return nil, nil
	}
	policy, err := m.own.OwnerPolicy()
	if err != nil {
		return nil, fmt.Errorf("startd %s: %w", m.own.Name, err)
	}
	core := owner.New(owner.Options{Policy: policy, Name: m.own.Name, Ad: l.core.Ad()})
	return &lent{Lender: lend.New(m.own.Name, core, l.core, holders{l})}, nil
}

// signed takes in what the guard sees.
func (l *loop) signed(s *wire.GuardSigns) {
	o, now := l.lent, boottime()
	if o.signs == nil || o.rules.version != s.GetOwnerRules() {
		o.rules.version = s.GetOwnerRules()
		l.readRules(now)
	}
	froze := l.frozeOurs(s)
	o.signs = s
	o.Signed(now, time.Now(), signsOf(s), froze)
}

// guardLost notes that the guard is not heard of.
func (l *loop) guardLost(n guardLost) {
	if l.m.own.Guarded() {
		l.m.log.Error("nothing is heard of the guard of this machine: it is taken to be in use", "address", l.m.node.GuardAddress(), "why", n.why,
			"cure", "roost doctor says how it is; roost guard starts it")
	}
	l.lent.GuardLost(boottime())
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
	o := l.lent
	began := l.sinceInput()
	did, wake := o.Attend(boottime())
	if !did.Asked {
		return wake
	}
	if !o.pending {
		if o.began = began.now; did.Froze {
			o.began = began.input
		}
	}
	heard := did.Told && o.signs != nil
	if did.Stops {
		l.awaitStill()
	} else if heard && !o.pending {
		o.acted = o.signs.GetSequence()
	}
	if heard || did.Stops || did.News || did.Orders {
		l.reportTo()
	}
	return wake
}

// lately is how long ago input may have been for tasks to be stopped because of it, and not of something that came after.
const lately = 2 * time.Second

// beginning is since when tasks that are stopped were to stand still: now, or since the input that stops them, where it is that.
type beginning struct{ now, input time.Time }

func (l *loop) sinceInput() beginning {
	b := beginning{now: time.Now()}
	b.input = b.now
	if s := l.lent.signs; s != nil {
		if ago := boottime() - slot.Instant(s.GetInput()); ago >= 0 && ago < lately {
			b.input = b.now.Add(-ago)
		}
	}
	return b
}
