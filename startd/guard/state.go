package guard

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/idle"
)

// How the guard judges what it sees.
const (
	quiet       = time.Second      // input after so long without is news that cannot wait
	tellAgain   = 2 * time.Second  // the whole picture, when nothing has changed
	tellInput   = time.Second      // while somebody types
	tight       = 5.0              // percent of pressure of memory above which tasks have to leave
	awakeAfter  = 10 * time.Second // the machine has woken, and whoever woke it had time to touch it
	slept       = time.Second      // the least sleep that is one
	maxReason   = 200              // bytes of a reason
	usualOthers = 0.5              // cores of others' work from which the machine counts as used
)

// state is what the guard knows. Only its loop touches it; instants and the wall clock come in as arguments.
type state struct {
	order   []string // names of the sources, in the order of the signs
	sights  map[string]idle.Sight
	console bool
	rules   rules
	pause   *Pause

	foreignSince idle.Instant // 0: others' work is below what counts
	input        idle.Instant // the last, however
	touched      bool         // after a quiet time there was input, and no signs have said so
	woke         idle.Instant // the last time that the machine woke; 0: it has not slept
	asleep       bool         // since then nobody has looked

	sequence uint64
	said     *wire.GuardSigns // last
	why      string           // they were urgent; empty: they were not
	saidAt   idle.Instant
}

// rules are what the owner's own file says of what the guard judges.
type rules struct {
	version    uint64
	paused     bool     // he said so in the file
	owners     []string // who may pause
	foreignCPU float64  // cores
	exclusive  []string // programs during which nothing runs
	onBattery  bool     // work may go on when the machine runs on its battery
	wrong      string   // what is wrong with the file; the machine is not lent until it is right
}

// newState begins. Sequences rise over restarts of the guard, too, because the clock of instants does.
func newState(sources []idle.Source, now idle.Instant) *state {
	s := &state{sights: map[string]idle.Sight{}, sequence: uint64(now), rules: rules{foreignCPU: usualOthers}}
	for _, source := range sources {
		s.order = append(s.order, source.Name())
	}
	return s
}

// saw folds what a source sees into the state.
func (s *state) saw(sight idle.Sight, now idle.Instant) {
	if !slices.Contains(s.order, sight.Name) {
		return
	}
	s.sights[sight.Name] = sight
	p := idle.Combine(s.all(), s.console)
	s.touched = s.touched || p.Input-s.input >= quiet && (s.said != nil || now-p.Input < quiet)
	s.input = max(s.input, p.Input)
	switch cores := p.ForeignCPU; {
	case cores >= s.rules.foreignCPU && s.foreignSince == 0:
		s.foreignSince = now
	case cores < s.rules.foreignCPU/2: // or work at the very threshold would start and stop tasks for ever
		s.foreignSince = 0
	}
}

// complete reports whether every source has spoken.
func (s *state) complete() bool { return len(s.sights) == len(s.order) }

func (s *state) all() []idle.Sight {
	var all []idle.Sight
	for _, name := range s.order {
		if sight, ok := s.sights[name]; ok {
			all = append(all, sight)
		}
	}
	return all
}

// wokeUp: the machine has slept. Somebody woke it, most likely a person, who would not like to see it busy.
func (s *state) wokeUp(now idle.Instant) { s.woke, s.asleep, s.touched = now, true, true }

// tick folds in that time passes.
func (s *state) tick(now idle.Instant, wall time.Time) (ended *Pause) {
	if s.asleep && now-s.woke >= awakeAfter {
		s.asleep = false
	}
	if s.pause != nil && s.pause.over(wall, now) {
		ended, s.pause = s.pause, nil
	}
	return ended
}

// standing is the pause in force: his own, or that of his file.
func (s *state) standing() *wire.Pause {
	if s.pause == nil && s.rules.paused {
		return &wire.Pause{By: "the owner's file", Reason: "it says paused = true"}
	}
	return s.pause.wire()
}

// signs is the whole picture, without a sequence.
func (s *state) signs() *wire.GuardSigns {
	p := idle.Combine(s.all(), s.console)
	g := &wire.GuardSigns{
		Input: int64(max(p.Input, s.woke)), ConsoleInput: int64(max(p.ConsoleInput, s.woke)), Busy: p.Busy,
		ForeignCpu: p.ForeignCPU, ForeignBusySince: int64(s.foreignSince),
		MemoryPressure: p.MemoryPressure, CpuPressure: p.CPUPressure, MemoryAvailable: p.MemoryAvailable,
		OnBattery: p.OnBattery, Hot: p.Hot, Game: p.Game, Asleep: p.Sleeping || s.asleep,
		Pause: s.standing(), OwnerRules: s.rules.version,
	}
	if s.rules.wrong != "" {
		g.Busy = "the owner's file has a mistake: " + s.rules.wrong
	}
	for _, sight := range s.all() {
		g.Sources = append(g.Sources, &wire.IdleSource{Name: sight.Name, Health: wire.IdleSource_Health(sight.Health), Text: sight.Text,
			Last: int64(max(sight.Input, sight.ConsoleInput)), Hardware: sight.Reach == idle.Hardware})
	}
	return g
}

// say returns the next signs if it is time for some; nil if not. Force has them said in any case. Urgent ones are those that may stop tasks.
func (s *state) say(now idle.Instant, frozen []string, force bool) *wire.GuardSigns {
	next := s.signs()
	next.Frozen = frozen
	why := s.urgency(next)
	if why == "" && !force && !s.due(next, now) {
		return nil
	}
	s.sequence++
	next.Sequence, next.Urgent = s.sequence, why != ""
	s.said, s.saidAt, s.why, s.touched = next, now, why, false
	return next
}

func (s *state) due(next *wire.GuardSigns, now idle.Instant) bool {
	old, since := s.said, now-s.saidAt
	switch {
	case since >= tellAgain:
		return true
	case next.Input > old.Input:
		return since >= tellInput
	}
	return next.Busy != old.Busy || (next.ForeignBusySince == 0) != (old.ForeignBusySince == 0) || next.OnBattery != old.OnBattery || next.Hot != old.Hot ||
		next.Game != old.Game || next.Asleep != old.Asleep || !proto.Equal(next.Pause, old.Pause) || next.OwnerRules != old.OwnerRules ||
		(next.MemoryPressure > tight) != (old.MemoryPressure > tight) || !slices.Equal(next.Frozen, old.Frozen) || !healthy(next, old)
}

// healthy reports whether the sources are as well as they were.
func healthy(a, b *wire.GuardSigns) bool {
	return slices.EqualFunc(a.Sources, b.Sources, func(x, y *wire.IdleSource) bool { return x.Name == y.Name && x.Health == y.Health })
}

// urgency says what in the next signs may stop tasks and was not in the last; empty for nothing. Of the first signs everything is new: whoever guarded before may have
// died with them on his lips.
func (s *state) urgency(next *wire.GuardSigns) string {
	old := s.said
	if old == nil {
		old = &wire.GuardSigns{}
	}
	switch {
	case next.Pause != nil && old.Pause == nil:
		return "paused"
	case s.touched:
		return "input"
	case next.Busy != "" && old.Busy == "":
		return next.Busy
	case next.Asleep && !old.Asleep:
		return "asleep"
	case next.Game && !old.Game:
		return "an exclusive program"
	case next.ForeignBusySince != 0 && old.ForeignBusySince == 0:
		return fmt.Sprintf("%.1f cores of other work", next.ForeignCpu)
	case next.OnBattery && !old.OnBattery && !s.rules.onBattery:
		return "on battery"
	case next.Hot && !old.Hot:
		return "hot"
	case next.MemoryPressure > tight && old.MemoryPressure <= tight:
		return "pressure of memory"
	}
	return ""
}
