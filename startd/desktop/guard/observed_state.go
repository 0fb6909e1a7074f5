package guard

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// How the guard judges what it sees.
const (
	quietPeriod         = time.Second      // input after so long without is news that cannot wait
	fullResendInterval  = 2 * time.Second  // the whole picture, when nothing has changed
	inputResendInterval = time.Second      // while somebody types
	memoryPressureLimit = 5.0              // percent of pressure of memory above which tasks have to leave
	wakeGrace           = 10 * time.Second // the machine has woken, and whoever woke it had time to touch it
	minSleep            = time.Second      // the least sleep that is one
	maxReason           = 200              // bytes of a reason
	defaultForeignCPU   = 0.5              // cores of others' work from which the machine counts as used
)

// observedState is what the guard knows. Only its loop touches it; instants and the wall
// clock come in as arguments.
type observedState struct {
	sourceOrder []string // names of the sources, in the order of the signs
	readings    map[string]idle.SourceReading
	console     bool
	rules       ownerRules
	pause       *OwnerPause

	foreignSince   idle.BootTime // 0: others' work is below what counts
	lastInput      idle.BootTime // the last, however
	hasUnsentTouch bool          // after a quiet time there was input, and no signs have said so
	wokeAt         idle.BootTime // the last time that the machine woke; 0: it has not slept
	asleep         bool          // since then nobody has looked

	sequence     uint64
	lastSent     *wire.GuardSigns // last
	urgentReason string           // they were urgent; empty: they were not
	lastSentAt   idle.BootTime
}

// ownerRules are what the owner's own file says of what the guard judges.
type ownerRules struct {
	version       uint64
	pausedByFile  bool     // he said so in the file
	pauseUsers    []string // who may pause
	foreignCPU    float64  // cores
	exclusive     []string // programs during which nothing runs
	runsOnBattery bool     // work may go on when the machine runs on its battery
	fileError     string   // what is wrong with the file; the machine is not lent until it is right
}

// newObservedState begins. Sequences rise over restarts of the guard, too, because the
// clock of instants does.
func newObservedState(sources []idle.Source, now idle.BootTime) *observedState {
	s := &observedState{readings: map[string]idle.SourceReading{}, sequence: uint64(now),
		rules: ownerRules{foreignCPU: defaultForeignCPU}}
	for _, source := range sources {
		s.sourceOrder = append(s.sourceOrder, source.Name())
	}
	return s
}

// update folds what a source sees into the state.
func (s *observedState) update(reading idle.SourceReading, now idle.BootTime) {
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
	case cores < s.rules.foreignCPU/2: // or work at the very threshold would start and stop tasks for ever
		s.foreignSince = 0
	}
}

// hasAllSources reports whether every source has spoken.
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

// onWake: the machine has slept. Somebody woke it, most likely a person, who would not
// like to see it busy.
func (s *observedState) onWake(now idle.BootTime) {
	s.wokeAt, s.asleep, s.hasUnsentTouch = now, true, true
}

// tick folds in that time passes.
func (s *observedState) tick(now idle.BootTime, wall time.Time) (ended *OwnerPause) {
	if s.asleep && now-s.wokeAt >= wakeGrace {
		s.asleep = false
	}
	if s.pause != nil && s.pause.isOver(wall, now) {
		ended, s.pause = s.pause, nil
	}
	return ended
}

// activePause is the pause in force: his own, or that of his file.
func (s *observedState) activePause() *wire.Pause {
	if s.pause == nil && s.rules.pausedByFile {
		return &wire.Pause{By: "the owner's file", Reason: "it says paused = true"}
	}
	return s.pause.wire()
}

// currentObservations is the whole picture, without a sequence.
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

// nextObservations returns the next signs if it is time for some; nil if not. Force has
// them said in any case. Urgent ones are those that may stop tasks.
func (s *observedState) nextObservations(now idle.BootTime, frozen []string, force bool) *wire.GuardSigns {
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

func (s *observedState) nextSendTime(next *wire.GuardSigns, now idle.BootTime) bool {
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

// isNoLessHealthy reports whether the sources are as well as they were.
func isNoLessHealthy(a, b *wire.GuardSigns) bool {
	return slices.EqualFunc(a.Sources, b.Sources, func(x, y *wire.IdleSource) bool {
		return x.Name == y.Name && x.Health == y.Health
	})
}

// nextUrgency says what in the next signs may stop tasks and was not in the last; empty
// for nothing. Of the first signs everything is new: whoever guarded before may have died
// with them on his lips.
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
