package startd

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// ownerState is what the loop knows of the owner of its machine.
type ownerState struct {
	*desktop.PolicyEnforcer

	observations  *wire.GuardSigns // last heard
	rules         ruleFile         // of the owner's, as it was read
	actedOn       uint64           // signs that were acted on
	freezeBatch   int              // of claims that are being stopped, numbered
	batchPending  bool             // they do not all stand still yet
	freezeStarted time.Time        // the stopping of the first that has not
}

// quiescedEvent says that everything of a batch stands still, or will not soon.
type quiescedEvent struct {
	batch     int
	duration  time.Duration
	remaining int // that do not
}

// newOwnerState begins to follow the owner of the machine; nil on one that has none.
func (l *machineLoop) newOwnerState() (*ownerState, error) {
	m := l.host
	if !m.config.HasOwnerPolicy() {
		return nil, nil
	}
	rules, err := m.config.OwnerPolicy()
	if err != nil {
		return nil, fmt.Errorf("startd %s: %w", m.config.Name, err)
	}
	core := policy.New(policy.PolicyOptions{Policy: rules, Name: m.config.Name, Ad: l.table.Ad()})
	return &ownerState{PolicyEnforcer: desktop.New(m.config.Name, core, l.table, loopClaimController{l})}, nil
}

// onObservations takes in what the guard sees.
func (l *machineLoop) onObservations(s *wire.GuardSigns) {
	o, now := l.ownerState, boottime.Now()
	if o.observations == nil || o.rules.version != s.GetOwnerRules() {
		o.rules.version = s.GetOwnerRules()
		l.readRules(now)
	}
	froze := l.guardFrozeClaims(s)
	o.observations = s
	o.Observe(now, time.Now(), observationsOf(s), froze)
}

// onGuardLost notes that the guard is not heard of.
func (l *machineLoop) onGuardLost(n guardLost) {
	if l.host.config.NeedsGuard() {
		l.host.log.Error("nothing is heard of the guard of this machine: it is taken to be in use", "address",
			l.host.node.GuardAddress(), "why", n.reason,
			"cure", "roost doctor says how it is; roost guard starts it")
	}
	l.ownerState.GuardLost(boottime.Now())
}

// guardFrozeClaims reports whether the guard has frozen claims of this startd itself. The
// startd treats them like claims that an earlier process left frozen.
func (l *machineLoop) guardFrozeClaims(s *wire.GuardSigns) bool {
	if len(s.GetFrozen()) == 0 {
		return false
	}
	theirs := make(map[string]bool, len(s.GetFrozen()))
	for _, dir := range s.GetFrozen() {
		theirs[dir] = true
	}
	for _, h := range l.runners {
		if theirs[h.Suspension().FreezeDir()] {
			return true
		}
	}
	return false
}

func observationsOf(s *wire.GuardSigns) policy.GuardObservations {
	to := policy.GuardObservations{
		Input: time.Duration(s.GetInput()), Console: time.Duration(s.GetConsoleInput()), OwnerUseReason: s.GetBusy(),
		ForeignCPU:   s.GetForeignCpu(),
		ForeignSince: time.Duration(s.GetForeignBusySince()), MemoryPressure: s.GetMemoryPressure(),
		CPUPressure:     s.GetCpuPressure(),
		MemoryAvailable: roost.Bytes(s.GetMemoryAvailable()), OnBattery: s.GetOnBattery(), Hot: s.GetHot(),
		ExclusiveProgram: s.GetGame(), Asleep: s.GetAsleep(),
		Load: loadAverage(),
	}
	if p := s.GetPause(); p != nil {
		to.Pause = &policy.PauseOrder{By: p.GetBy(), Reason: p.GetReason()}
		if p.GetUntil() != 0 {
			to.Pause.Until = time.Unix(0, p.GetUntil())
		}
	}
	return to
}

// applyOwnerPolicy asks whether tasks have to stand still, or go, if something has
// changed by which that could be decided.
func (l *machineLoop) applyOwnerPolicy() roost.BootTime {
	o := l.ownerState
	began := l.newFreezeLatencyStart()
	did, wake := o.Apply(boottime.Now())
	if !did.Evaluated {
		return wake
	}
	if !o.batchPending {
		if o.freezeStarted = began.now; did.SuspendedRunning {
			o.freezeStarted = began.inputAt
		}
	}
	heard := did.GuardReported && o.observations != nil
	if did.NeedsQuiesce {
		l.waitQuiesced()
	} else if heard && !o.batchPending {
		o.actedOn = o.observations.GetSequence()
	}
	if heard || did.NeedsQuiesce || did.AvailabilityChanged || did.HasEffects {
		l.updateGuardReport()
	}
	return wake
}

// freezeLatencyWindow is the greatest age of an input that can be the cause of a freeze.
// After an older input, something later was the cause.
const freezeLatencyWindow = 2 * time.Second

// freezeLatencyStart is the instant from which the latency of a freeze counts. That is
// now, or the time of the input that causes the freeze.
type freezeLatencyStart struct{ now, inputAt time.Time }

func (l *machineLoop) newFreezeLatencyStart() freezeLatencyStart {
	b := freezeLatencyStart{now: time.Now()}
	b.inputAt = b.now
	if s := l.ownerState.observations; s != nil {
		if ago := boottime.Now() - roost.BootTime(s.GetInput()); ago >= 0 && ago < freezeLatencyWindow {
			b.inputAt = b.now.Add(-ago)
		}
	}
	return b
}
