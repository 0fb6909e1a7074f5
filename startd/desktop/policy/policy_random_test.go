package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// testMachine is a machine with a randomly acting owner. Its startd performs the effects,
// sometimes late, sometimes not at all.
type testMachine struct {
	*rand.Rand
	t                *testing.T
	core             *PolicyCore
	coreWithoutRules *PolicyCore // the same without the owner's file
	policy           Policy
	now              roost.BootTime
	wall             time.Time
	observations     GuardObservations
	lastObservations GuardObservations // the last observations that the guard sent
	rules            DesktopRules
	rulesError       bool
	guardLost        bool
	guardReported    bool
	claims           map[uint64]*testClaim
	next             uint64
	log              []string
}

type testClaim struct {
	PolicyClaim
	frozen, vacating, vacatingFrozen bool
	goneAt                           roost.BootTime // when it will have ended; 0: not planned
}

func TestRandomOwner(t *testing.T) {
	for seed := range uint64(60) {
		w := &testMachine{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, claims: map[uint64]*testClaim{},
			now: roost.BootTime(1+seed) * time.Hour, wall: time.Unix(1.7e9, 0).UTC()}
		w.policy, _ = PresetPolicy([]string{"desktop", "desktop-hours", "always", "server"}[seed%4])
		if seed%3 == 0 {
			w.policy.VacateDelay = 20 * time.Minute
		}
		w.core, w.coreWithoutRules = New(PolicyOptions{Policy: w.policy, Name: "n1"}),
			New(PolicyOptions{Policy: w.policy, Name: "n1"})
		for range 120 {
			w.step()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, strings.Join(w.log[max(len(w.log)-40, 0):], "\n"))
			}
		}
		w.endFaults()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(w.log[max(len(w.log)-40, 0):], "\n"))
		}
	}
}

func (w *testMachine) logLine(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%v %s", w.now, fmt.Sprintf(format, args...)))
}

func (w *testMachine) step() {
	w.advanceTime([]time.Duration{0, time.Second, 3 * time.Second, 20 * time.Second, time.Minute, 6 * time.Minute,
		time.Hour}[w.IntN(7)])
	switch n := w.IntN(20); {
	case n < 6:
		w.moveOwner()
	case n < 7:
		w.wall = time.Unix(w.Int64N(2e9), 0).UTC()
	case n < 8:
		w.guardLost = true
		w.core.GuardLost(w.now)
		w.coreWithoutRules.GuardLost(w.now)
		w.logLine("the guard is lost")
	case n < 10:
		w.changeRules()
	case n < 16:
		w.changeClaims()
	}
	if !w.guardLost && (w.guardReported || w.IntN(3) == 0) {
		w.observe()
	}
	w.performAndCheck()
}

// advanceTime advances the time; the startd calls Todo when due, unless the machine
// sleeps.
func (w *testMachine) advanceTime(d time.Duration) {
	end := w.now + d
	if d == time.Hour && w.IntN(2) == 0 {
		w.logLine("sleeps")
		w.wall, w.now = w.wall.Add(d), end
		return
	}
	for w.now < end {
		step := min(20*time.Second, end-w.now)
		w.wall, w.now = w.wall.Add(step), w.now+step
		if w.guardReported && !w.guardLost {
			w.observe()
		}
		w.performAndCheck()
	}
}

func (w *testMachine) observe() {
	w.guardReported, w.guardLost, w.lastObservations = true, false, w.observations
	w.core.Observe(w.now, w.wall, w.observations)
	w.coreWithoutRules.Observe(w.now, w.wall, w.observations)
}

// moveOwner lets the owner do something.
func (w *testMachine) moveOwner() {
	s := &w.observations
	flip := func(b *bool) { *b = !*b && w.IntN(3) == 0 }
	switch w.IntN(9) {
	case 0, 1, 2:
		s.Input, s.Console = w.now, w.now
	case 3:
		s.OwnerUseReason = []string{"", "", "a video call"}[w.IntN(3)]
	case 4:
		s.ForeignSince = []roost.BootTime{0, 0, w.now}[w.IntN(3)]
	case 5:
		flip(&s.OnBattery)
		flip(&s.Hot)
	case 6:
		flip(&s.ExclusiveProgram)
		flip(&s.Asleep)
	case 7:
		s.Pause = []*PauseOrder{nil, nil, {By: "ann"}}[w.IntN(3)]
	case 8:
		s.MemoryPressure = float64(w.IntN(12))
	}
	w.logLine("signs %+v", *s)
}

// changeRules changes the owner's file.
func (w *testMachine) changeRules() {
	w.rulesError = w.IntN(5) == 0
	w.rules = DesktopRules{Paused: w.IntN(6) == 0, RunsOnBattery: w.IntN(4) == 0,
		StartDelay:  time.Duration(w.IntN(3)*w.IntN(20)) * time.Minute,
		ResumeDelay: time.Duration(w.IntN(2)*w.IntN(10)) * time.Minute,
		VacateDelay: time.Duration(w.IntN(2)*w.IntN(10)) * time.Minute}
	if w.IntN(4) == 0 {
		h, err := ParseHours([]string{"Mon-Fri 08:00-18:00", "22:00-06:00", "Sat,Sun 00:00-24:00"}[w.IntN(3)])
		if err != nil {
			w.t.Fatal(err)
		}
		w.rules.NoRunHours = []WeeklyHours{h}
	}
	for src, to := range map[string]**classad.Expr{"KeyboardIdle > 1000": &w.rules.Start,
		"ClockMin < 30": &w.rules.Suspend, "1 + \"a\"": &w.rules.Preempt} {
		if e, err := classad.ParseExpr(src); err == nil && w.IntN(6) == 0 {
			*to = &e
		}
	}
	var err error
	if w.rulesError {
		err = errors.New("owner.hcl:1:1: nonsense")
	}
	w.core.SetRules(w.now, w.rules, err)
	w.logLine("rules %+v %v", w.rules, err)
}

// changeClaims changes the claims: one is added, ends, or begins another attempt.
func (w *testMachine) changeClaims() {
	ids := w.ids()
	if willing, _ := w.core.Available(); (willing || w.IntN(10) == 0) && len(ids) < 5 && w.IntN(2) == 0 {
		w.next++
		w.claims[w.next] = &testClaim{PolicyClaim: PolicyClaim{ID: w.next, Running: w.IntN(2) == 0,
			AttemptStarted: w.now, GPUs: w.IntN(2), CanCheckpoint: w.IntN(2) == 0}}
		w.logLine("claim %d", w.next)
	} else if len(ids) > 0 {
		cl := w.claims[ids[w.IntN(len(ids))]]
		switch {
		case w.IntN(3) == 0:
			delete(w.claims, cl.ID)
			w.logLine("claim %d is released", cl.ID)
		case cl.Running:
			cl.Running, cl.frozen = false, false
			w.logLine("the task of claim %d ends", cl.ID)
		case !cl.vacating:
			cl.Running, cl.AttemptStarted = true, w.now
			w.logLine("a task on claim %d", cl.ID)
		}
	}
	w.sendClaims()
}

func (w *testMachine) ids() []uint64 {
	var ids []uint64
	for id := range w.claims {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (w *testMachine) sendClaims() {
	var all []PolicyClaim
	for _, id := range w.ids() {
		all = append(all, w.claims[id].PolicyClaim)
	}
	w.core.SetClaims(w.now, all)
}

// performAndCheck performs the effects that are due, and checks them against the
// observations.
func (w *testMachine) performAndCheck() {
	effects, wake := w.core.Todo(w.now)
	w.core.check()
	w.coreWithoutRules.Todo(w.now)
	if wake <= w.now {
		w.t.Errorf("at %v: to be asked at %v", w.now, wake)
	}
	for _, o := range effects {
		w.logLine("  %s", effectText(o))
		w.performEffect(o)
	}
	if again, _ := w.core.Todo(w.now); len(again) > 0 {
		w.t.Errorf("asked again: %s", effectText(again[0]))
	}
	if why := w.ownerNeedReason(); why != "" {
		for _, id := range w.ids() {
			if cl := w.claims[id]; cl.Running && !cl.frozen {
				w.t.Errorf("at %v: the task of claim %d runs, although %s", w.now, id, why)
			}
		}
		if ok, _ := w.core.Available(); ok {
			w.t.Errorf("at %v: the machine is lent, although %s", w.now, why)
		}
	}
	if ok, _ := w.core.Available(); ok && !w.rules.RunsOnBattery {
		if ok, why := w.coreWithoutRules.Available(); !ok {
			w.t.Errorf("at %v: the owner's file lends a machine that is not: %s", w.now, why)
		}
	}
	gone := false
	for _, id := range w.ids() {
		if cl := w.claims[id]; cl.goneAt > 0 && w.now >= cl.goneAt {
			delete(w.claims, id)
			gone = true
		}
	}
	if gone {
		w.sendClaims()
	}
}

func (w *testMachine) performEffect(o Effect) {
	of := func(id uint64) *testClaim {
		cl, ok := w.claims[id]
		if !ok {
			w.t.Errorf("at %v: an order for claim %d, that there is not: %s", w.now, id, effectText(o))
			return &testClaim{}
		}
		return cl
	}
	switch o := o.(type) {
	case FreezeClaim:
		if cl := of(o.ID); cl.frozen {
			w.t.Errorf("at %v: claim %d is frozen twice", w.now, o.ID)
		} else {
			cl.frozen = true
		}
	case ResumeClaim:
		if cl := of(o.ID); !cl.frozen || cl.vacatingFrozen {
			w.t.Errorf("at %v: claim %d is thawed: %+v", w.now, o.ID, cl)
		} else {
			cl.frozen = false
		}
	case FreeGPU:
		if cl := of(o.ID); !cl.frozen || cl.GPUs == 0 {
			w.t.Errorf("at %v: GPUs of claim %d: %+v", w.now, o.ID, cl)
		}
	case TrimMemory:
		if cl := of(o.ID); !cl.frozen {
			w.t.Errorf("at %v: claim %d shrinks and runs", w.now, o.ID)
		}
	case VacateClaim:
		cl := of(o.ID)
		if cl.vacating || o.AlreadyFrozen != cl.frozen {
			w.t.Errorf("at %v: claim %d leaves: %+v, %+v", w.now, o.ID, o, cl)
		}
		if cl.vacating, cl.vacatingFrozen = true, o.AlreadyFrozen; w.IntN(3) > 0 {
			cl.goneAt = w.now + time.Duration(w.IntN(300))*time.Second
		}
	case KillClaim:
		cl := of(o.ID)
		cl.Running = false
		if w.IntN(2) == 0 {
			cl.goneAt = w.now
		}
	}
}

// ownerNeedReason returns, from the observations alone, why no task may run now. It is
// empty if the policy decides.
func (w *testMachine) ownerNeedReason() string {
	s, desk := &w.lastObservations, strings.HasPrefix(w.policy.Name, "desktop")
	guarded := desk || !w.rulesError && (w.rules.Start != nil || w.rules.StartDelay > 0 || w.rules.ResumeDelay > 0)
	switch {
	case w.rulesError:
		return "the owner's file is broken"
	case w.rules.Paused || w.guardReported && s.Pause != nil:
		return "it is paused"
	case slices.ContainsFunc(w.rules.NoRunHours, func(h WeeklyHours) bool {
		return w.guardReported && !w.guardLost && h.Contains(w.wall)
	}):
		return "of its hours"
	case guarded && w.guardLost:
		return "the guard is lost"
	case guarded && w.guardReported && s.Asleep:
		return "it goes to sleep"
	case !desk || !w.guardReported:
		return ""
	case s.OwnerUseReason != "" || s.ExclusiveProgram || s.Hot || s.ForeignSince != 0:
		return "its owner works"
	case s.OnBattery && !w.rules.RunsOnBattery:
		return "it runs on its battery"
	case s.Input > 0 && w.now-s.Input < time.Minute && (w.rules.ResumeDelay == 0 || w.rules.ResumeDelay >= time.Minute):
		return "somebody touched it"
	}
	return ""
}

// endFaults ends all faults while the owner leaves. Within an hour every task must resume
// or be gone.
func (w *testMachine) endFaults() {
	w.logLine("calm")
	w.observations = GuardObservations{Input: w.observations.Input}
	w.rules, w.rulesError, w.guardLost, w.guardReported = DesktopRules{}, false, false, true
	w.wall = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC) // a Sunday, at night
	w.core.SetRules(w.now, w.rules, nil)
	w.observe()
	w.performAndCheck()
	w.advanceTime(59 * time.Minute)
	for id, cl := range w.claims {
		if cl.frozen && cl.Running || cl.vacating {
			w.t.Errorf("at %v: claim %d is left: %+v", w.now, id, cl)
		}
	}
	if ok, why := w.core.Available(); !ok {
		w.t.Errorf("at %v: the machine is not lent: %s", w.now, why)
	}
}

// BenchmarkTodo measures one call for a machine with 64 claims, each with a running task.
func BenchmarkTodo(b *testing.B) {
	p, _ := PresetPolicy("desktop")
	c := New(PolicyOptions{Policy: p, Name: "n1"})
	now, job := roost.BootTime(time.Hour), classad.New()
	job.SetInt("Walltime", 3600)
	c.Observe(now, time.Unix(1.7e9, 0), GuardObservations{})
	var all []PolicyClaim
	for id := range uint64(64) {
		all = append(all, PolicyClaim{ID: id + 1, Job: job, Running: true, AttemptStarted: now})
	}
	c.SetClaims(now, all)
	c.Todo(now)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second
		c.Observe(now, time.Unix(1.7e9, 0), GuardObservations{})
		if effects, _ := c.Todo(now); len(effects) > 0 {
			b.Fatal(effectText(effects[0]))
		}
	}
}
