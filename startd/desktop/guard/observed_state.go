package guard

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// Thresholds of the guard.
const (
	quietPeriod         = time.Second      // input after this time without is urgent
	fullResendInterval  = 2 * time.Second  // interval of complete observations without a change
	inputResendInterval = time.Second      // interval while a person types
	memoryPressureLimit = 5.0              // percent of memory pressure above which tasks are evicted
	wakeGrace           = 10 * time.Second // time for the person who woke the machine to touch it
	minSleep            = time.Second      // shortest sleep that counts
	maxReason           = 200              // bytes of a reason
	defaultForeignCPU   = 0.5              // cores of other work at which the machine counts as used
)

// observedState is what the guard knows. Only its loop uses it; boot times and wall clock
// times are arguments.
type observedState struct {
	sourceOrder []string // names of the sources, in the order of the observations
	readings    map[string]idle.SourceReading
	console     bool
	rules       ownerRules
	pause       *OwnerPause

	foreignSince   roost.BootTime // since when other work exceeds the threshold; 0: it does not
	lastInput      roost.BootTime // boot time of the last input of any kind
	hasUnsentTouch bool           // there was input after a quiet period that has not been sent yet
	wokeAt         roost.BootTime // boot time of the last wake-up; 0: it has not slept
	asleep         bool           // no source has reported since the sleep

	sequence     uint64
	lastSent     *wire.GuardSigns // the last observations that were sent
	urgentReason string           // why they were urgent; empty: they were not
	lastSentAt   roost.BootTime
}

// ownerRules contains the settings in the owner's file that the guard uses.
type ownerRules struct {
	version       uint64
	pausedByFile  bool     // the file pauses the machine
	pauseUsers    []string // users who may pause
	foreignCPU    float64  // cores
	exclusive     []string // programs during which no task runs
	runsOnBattery bool     // tasks may run on battery
	fileError     string   // error in the file; until it is fixed the machine is not available
}

// newObservedState returns the initial state. Sequence numbers increase across restarts
// of the guard, as they start from the boot time.
func newObservedState(sources []idle.Source, now roost.BootTime) *observedState {
	s := &observedState{readings: map[string]idle.SourceReading{}, sequence: uint64(now),
		rules: ownerRules{foreignCPU: defaultForeignCPU}}
	for _, source := range sources {
		s.sourceOrder = append(s.sourceOrder, source.Name())
	}
	return s
}

// update applies a source's reading to the state.
func (s *observedState) update(reading idle.SourceReading, now roost.BootTime) {
	if !slices.Contains(s.sourceOrder, reading.Name) {
		return
	}
	s.readings[reading.Name] = reading
	p := idle.CombineReadings(s.readingsInOrder(), s.console)
	s.hasUnsentTouch = s.hasUnsentTouch || p.Input-s.lastInput >= quietPeriod &&
		(s.lastSent != nil || now-p.Input < quietPeriod)
	s.lastInput = max(s.lastInput, p.Input)
	switch cores := p.ForeignCPU; {
	case cores >= s.rules.foreignCPU && s.foreignSince == 0:
		s.foreignSince = now
	case cores < s.rules.foreignCPU/2: // otherwise work at the threshold would start and stop tasks for ever
		s.foreignSince = 0
	}
}

// hasAllSources reports whether every source has reported.
func (s *observedState) hasAllSources() bool { return len(s.readings) == len(s.sourceOrder) }

func (s *observedState) readingsInOrder() []idle.SourceReading {
	var all []idle.SourceReading
	for _, name := range s.sourceOrder {
		if reading, ok := s.readings[name]; ok {
			all = append(all, reading)
		}
	}
	return all
}

// onWake records that the machine has slept. Most likely a person woke it, who needs it
// at once.
func (s *observedState) onWake(now roost.BootTime) {
	s.wokeAt, s.asleep, s.hasUnsentTouch = now, true, true
}

// tick updates what depends on the time, and returns a pause that has ended.
func (s *observedState) tick(now roost.BootTime, wall time.Time) (ended *OwnerPause) {
	if s.asleep && now-s.wokeAt >= wakeGrace {
		s.asleep = false
	}
	if s.pause != nil && s.pause.isOver(wall, now) {
		ended, s.pause = s.pause, nil
	}
	return ended
}

// activePause returns the pause in force: the owner's pause, or that of the owner's file.
func (s *observedState) activePause() *wire.Pause {
	if s.pause == nil && s.rules.pausedByFile {
		return &wire.Pause{By: "the owner's file", Reason: "it says paused = true"}
	}
	return s.pause.wire()
}

// currentObservations returns the complete observations, without a sequence.
func (s *observedState) currentObservations() *wire.GuardSigns {
	p := idle.CombineReadings(s.readingsInOrder(), s.console)
	g := &wire.GuardSigns{
		Input: int64(max(p.Input, s.wokeAt)), ConsoleInput: int64(max(p.ConsoleInput, s.wokeAt)),
		Busy:       p.OwnerUseReason,
		ForeignCpu: p.ForeignCPU, ForeignBusySince: int64(s.foreignSince),
		MemoryPressure: p.MemoryPressure, CpuPressure: p.CPUPressure, MemoryAvailable: p.MemoryAvailable,
		OnBattery: p.OnBattery, Hot: p.Hot, Game: p.ExclusiveProgram, Asleep: p.Sleeping || s.asleep,
		Pause: s.activePause(), OwnerRules: s.rules.version,
	}
	if s.rules.fileError != "" {
		g.Busy = "the owner's file has a mistake: " + s.rules.fileError
	}
	for _, reading := range s.readingsInOrder() {
		g.Sources = append(g.Sources, &wire.IdleSource{Name: reading.Name,
			Health: wire.IdleSource_Health(reading.Health), Text: reading.Text,
			Last: int64(max(reading.Input, reading.ConsoleInput)), Hardware: reading.Coverage == idle.Hardware})
	}
	return g
}

// nextObservations returns the next observations if they are due, or nil if not. With
// force it always returns them. Urgent observations are those that may freeze tasks.
func (s *observedState) nextObservations(now roost.BootTime, frozen []string, force bool) *wire.GuardSigns {
	next := s.currentObservations()
	next.Frozen = frozen
	why := s.nextUrgency(next)
	if why == "" && !force && !s.nextSendTime(next, now) {
		return nil
	}
	s.sequence++
	next.Sequence, next.Urgent = s.sequence, why != ""
	s.lastSent, s.lastSentAt, s.urgentReason, s.hasUnsentTouch = next, now, why, false
	return next
}

func (s *observedState) nextSendTime(next *wire.GuardSigns, now roost.BootTime) bool {
	old, since := s.lastSent, now-s.lastSentAt
	switch {
	case since >= fullResendInterval:
		return true
	case next.Input > old.Input:
		return since >= inputResendInterval
	}
	return next.Busy != old.Busy || (next.ForeignBusySince == 0) != (old.ForeignBusySince == 0) ||
		next.OnBattery != old.OnBattery || next.Hot != old.Hot ||
		next.Game != old.Game || next.Asleep != old.Asleep || !proto.Equal(next.Pause, old.Pause) ||
		next.OwnerRules != old.OwnerRules ||
		(next.MemoryPressure > memoryPressureLimit) != (old.MemoryPressure > memoryPressureLimit) ||
		!slices.Equal(next.Frozen, old.Frozen) || !isNoLessHealthy(next, old)
}

// isNoLessHealthy reports whether the health of all sources is unchanged.
func isNoLessHealthy(a, b *wire.GuardSigns) bool {
	return slices.EqualFunc(a.Sources, b.Sources, func(x, y *wire.IdleSource) bool {
		return x.Name == y.Name && x.Health == y.Health
	})
}

// nextUrgency returns what in the next observations may freeze tasks and was not in the
// last, or "". For the first observations everything counts as new: an earlier guard may
// have died before it sent them.
func (s *observedState) nextUrgency(next *wire.GuardSigns) string {
	old := s.lastSent
	if old == nil {
		old = &wire.GuardSigns{}
	}
	switch {
	case next.Pause != nil && old.Pause == nil:
		return "paused"
	case s.hasUnsentTouch:
		return "input"
	case next.Busy != "" && old.Busy == "":
		return next.Busy
	case next.Asleep && !old.Asleep:
		return "asleep"
	case next.Game && !old.Game:
		return "an exclusive program"
	case next.ForeignBusySince != 0 && old.ForeignBusySince == 0:
		return fmt.Sprintf("%.1f cores of other work", next.ForeignCpu)
	case next.OnBattery && !old.OnBattery && !s.rules.runsOnBattery:
		return "on battery"
	case next.Hot && !old.Hot:
		return "hot"
	case next.MemoryPressure > memoryPressureLimit && old.MemoryPressure <= memoryPressureLimit:
		return "pressure of memory"
	}
	return ""
}
