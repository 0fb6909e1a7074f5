package owner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
)

// world is a machine with an owner who does what comes to his mind, and a startd that does what it is told, sometimes late, sometimes not at all.
type world struct {
	*rand.Rand
	t      *testing.T
	c      *Core
	plain  *Core // the same without the owner's file
	policy Policy
	now    Instant
	wall   time.Time
	signs  Signs
	told   Signs // as the guard last told them
	rules  Rules
	broken bool
	lost   bool
	heard  bool
	claims map[uint64]*claim
	next   uint64
	story  []string
}

type claim struct {
	Tenant
	frozen, leaving, final bool
	gone                   Instant // when it will be; 0: not so far
}

func TestRandomOwner(t *testing.T) {
	for seed := range uint64(60) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, claims: map[uint64]*claim{}, now: Instant(1+seed) * time.Hour, wall: time.Unix(1.7e9, 0).UTC()}
		w.policy, _ = Preset([]string{"desktop", "desktop-hours", "always", "server"}[seed%4])
		if seed%3 == 0 {
			w.policy.LeaveAfter = 20 * time.Minute
		}
		w.c, w.plain = New(Options{Policy: w.policy, Name: "n1"}), New(Options{Policy: w.policy, Name: "n1"})
		for range 120 {
			w.step()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, strings.Join(w.story[max(len(w.story)-40, 0):], "\n"))
			}
		}
		w.calm()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(w.story[max(len(w.story)-40, 0):], "\n"))
		}
	}
}

func (w *world) note(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%v %s", w.now, fmt.Sprintf(format, args...)))
}

func (w *world) step() {
	w.pass([]time.Duration{0, time.Second, 3 * time.Second, 20 * time.Second, time.Minute, 6 * time.Minute, time.Hour}[w.IntN(7)])
	switch n := w.IntN(20); {
	case n < 6:
		w.live()
	case n < 7:
		w.wall = time.Unix(w.Int64N(2e9), 0).UTC()
	case n < 8:
		w.lost = true
		w.c.GuardLost(w.now)
		w.plain.GuardLost(w.now)
		w.note("the guard is lost")
	case n < 10:
		w.write()
	case n < 16:
		w.claim()
	}
	if !w.lost && (w.heard || w.IntN(3) == 0) {
		w.observe()
	}
	w.do()
}

// pass lets time go by; a startd asks when it is due, unless the machine sleeps.
func (w *world) pass(d time.Duration) {
	end := w.now + d
	if d == time.Hour && w.IntN(2) == 0 {
		w.note("sleeps")
		w.wall, w.now = w.wall.Add(d), end
		return
	}
	for w.now < end {
		step := min(20*time.Second, end-w.now)
		w.wall, w.now = w.wall.Add(step), w.now+step
		if w.heard && !w.lost {
			w.observe()
		}
		w.do()
	}
}

func (w *world) observe() {
	w.heard, w.lost, w.told = true, false, w.signs
	w.c.Observe(w.now, w.wall, w.signs)
	w.plain.Observe(w.now, w.wall, w.signs)
}

// live makes the owner do something.
func (w *world) live() {
	s := &w.signs
	flip := func(b *bool) { *b = !*b && w.IntN(3) == 0 }
	switch w.IntN(9) {
	case 0, 1, 2:
		s.Input, s.Console = w.now, w.now
	case 3:
		s.Busy = []string{"", "", "a video call"}[w.IntN(3)]
	case 4:
		s.ForeignSince = []Instant{0, 0, w.now}[w.IntN(3)]
	case 5:
		flip(&s.OnBattery)
		flip(&s.Hot)
	case 6:
		flip(&s.Game)
		flip(&s.Asleep)
	case 7:
		s.Pause = []*Pause{nil, nil, {By: "ann"}}[w.IntN(3)]
	case 8:
		s.MemoryPressure = float64(w.IntN(12))
	}
	w.note("signs %+v", *s)
}

// write changes the owner's file.
func (w *world) write() {
	w.broken = w.IntN(5) == 0
	w.rules = Rules{Paused: w.IntN(6) == 0, OnBattery: w.IntN(4) == 0, StartAfter: time.Duration(w.IntN(3)*w.IntN(20)) * time.Minute,
		ResumeAfter: time.Duration(w.IntN(2)*w.IntN(10)) * time.Minute, LeaveAfter: time.Duration(w.IntN(2)*w.IntN(10)) * time.Minute}
	if w.IntN(4) == 0 {
		h, err := ParseHours([]string{"Mon-Fri 08:00-18:00", "22:00-06:00", "Sat,Sun 00:00-24:00"}[w.IntN(3)])
		if err != nil {
			w.t.Fatal(err)
		}
		w.rules.Hours = []Hours{h}
	}
	for src, to := range map[string]**classad.Expr{"KeyboardIdle > 1000": &w.rules.Start, "ClockMin < 30": &w.rules.Suspend, "1 + \"a\"": &w.rules.Preempt} {
		if e, err := classad.ParseExpr(src); err == nil && w.IntN(6) == 0 {
			*to = &e
		}
	}
	var err error
	if w.broken {
		err = errors.New("owner.hcl:1:1: nonsense")
	}
	w.c.SetRules(w.now, w.rules, err)
	w.note("rules %+v %v", w.rules, err)
}

// claim changes the claims: one comes, ends, or begins another attempt.
func (w *world) claim() {
	ids := w.ids()
	if willing, _ := w.c.Willing(); (willing || w.IntN(10) == 0) && len(ids) < 5 && w.IntN(2) == 0 {
		w.next++
		w.claims[w.next] = &claim{Tenant: Tenant{ID: w.next, Running: w.IntN(2) == 0, Began: w.now, GPUs: w.IntN(2), Savable: w.IntN(2) == 0}}
		w.note("claim %d", w.next)
	} else if len(ids) > 0 {
		cl := w.claims[ids[w.IntN(len(ids))]]
		switch {
		case w.IntN(3) == 0:
			delete(w.claims, cl.ID)
			w.note("claim %d is released", cl.ID)
		case cl.Running:
			cl.Running, cl.frozen = false, false
			w.note("the task of claim %d ends", cl.ID)
		case !cl.leaving:
			cl.Running, cl.Began = true, w.now
			w.note("a task on claim %d", cl.ID)
		}
	}
	w.tell()
}

func (w *world) ids() []uint64 {
	var ids []uint64
	for id := range w.claims {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (w *world) tell() {
	var all []Tenant
	for _, id := range w.ids() {
		all = append(all, w.claims[id].Tenant)
	}
	w.c.Tenants(w.now, all)
}

// do performs what is to be done, and holds it against what the signs say.
func (w *world) do() {
	orders, wake := w.c.Todo(w.now)
	w.c.check()
	w.plain.Todo(w.now)
	if wake <= w.now {
		w.t.Errorf("at %v: to be asked at %v", w.now, wake)
	}
	for _, o := range orders {
		w.note("  %s", tell(o))
		w.perform(o)
	}
	if again, _ := w.c.Todo(w.now); len(again) > 0 {
		w.t.Errorf("asked again: %s", tell(again[0]))
	}
	if why := w.busy(); why != "" {
		for _, id := range w.ids() {
			if cl := w.claims[id]; cl.Running && !cl.frozen {
				w.t.Errorf("at %v: the task of claim %d runs, although %s", w.now, id, why)
			}
		}
		if ok, _ := w.c.Willing(); ok {
			w.t.Errorf("at %v: the machine is lent, although %s", w.now, why)
		}
	}
	if ok, _ := w.c.Willing(); ok && !w.rules.OnBattery {
		if ok, why := w.plain.Willing(); !ok {
			w.t.Errorf("at %v: the owner's file lends a machine that is not: %s", w.now, why)
		}
	}
	gone := false
	for _, id := range w.ids() {
		if cl := w.claims[id]; cl.gone > 0 && w.now >= cl.gone {
			delete(w.claims, id)
			gone = true
		}
	}
	if gone {
		w.tell()
	}
}

func (w *world) perform(o Order) {
	of := func(id uint64) *claim {
		cl, ok := w.claims[id]
		if !ok {
			w.t.Errorf("at %v: an order for claim %d, that there is not: %s", w.now, id, tell(o))
			return &claim{}
		}
		return cl
	}
	switch o := o.(type) {
	case Freeze:
		if cl := of(o.ID); cl.frozen {
			w.t.Errorf("at %v: claim %d is frozen twice", w.now, o.ID)
		} else {
			cl.frozen = true
		}
	case Thaw:
		if cl := of(o.ID); !cl.frozen || cl.final {
			w.t.Errorf("at %v: claim %d is thawed: %+v", w.now, o.ID, cl)
		} else {
			cl.frozen = false
		}
	case FreeGPU:
		if cl := of(o.ID); !cl.frozen || cl.GPUs == 0 {
			w.t.Errorf("at %v: GPUs of claim %d: %+v", w.now, o.ID, cl)
		}
	case Shrink:
		if cl := of(o.ID); !cl.frozen {
			w.t.Errorf("at %v: claim %d shrinks and runs", w.now, o.ID)
		}
	case Leave:
		cl := of(o.ID)
		if cl.leaving || o.Still != cl.frozen {
			w.t.Errorf("at %v: claim %d leaves: %+v, %+v", w.now, o.ID, o, cl)
		}
		if cl.leaving, cl.final = true, o.Still; w.IntN(3) > 0 {
			cl.gone = w.now + time.Duration(w.IntN(300))*time.Second
		}
	case Kill:
		cl := of(o.ID)
		cl.Running = false
		if w.IntN(2) == 0 {
			cl.gone = w.now
		}
	}
}

// busy says from the signs alone why no task may run now; empty where that is for the policy to say.
func (w *world) busy() string {
	s, desk := &w.told, strings.HasPrefix(w.policy.Name, "desktop")
	guarded := desk || !w.broken && (w.rules.Start != nil || w.rules.StartAfter > 0 || w.rules.ResumeAfter > 0)
	switch {
	case w.broken:
		return "the owner's file is broken"
	case w.rules.Paused || w.heard && s.Pause != nil:
		return "it is paused"
	case slices.ContainsFunc(w.rules.Hours, func(h Hours) bool { return w.heard && !w.lost && h.Hold(w.wall) }):
		return "of its hours"
	case guarded && w.lost:
		return "the guard is lost"
	case guarded && w.heard && s.Asleep:
		return "it goes to sleep"
	case !desk || !w.heard:
		return ""
	case s.Busy != "" || s.Game || s.Hot || s.ForeignSince != 0:
		return "its owner works"
	case s.OnBattery && !w.rules.OnBattery:
		return "it runs on its battery"
	case s.Input > 0 && w.now-s.Input < time.Minute && (w.rules.ResumeAfter == 0 || w.rules.ResumeAfter >= time.Minute):
		return "somebody touched it"
	}
	return ""
}

// calm ends the faults and sends the owner home: within an hour every task goes on, or is gone.
func (w *world) calm() {
	w.note("calm")
	w.signs = Signs{Input: w.signs.Input}
	w.rules, w.broken, w.lost, w.heard = Rules{}, false, false, true
	w.wall = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC) // a Sunday, in the night
	w.c.SetRules(w.now, w.rules, nil)
	w.observe()
	w.do()
	w.pass(59 * time.Minute)
	for id, cl := range w.claims {
		if cl.frozen && cl.Running || cl.leaving {
			w.t.Errorf("at %v: claim %d is left: %+v", w.now, id, cl)
		}
	}
	if ok, why := w.c.Willing(); !ok {
		w.t.Errorf("at %v: the machine is not lent: %s", w.now, why)
	}
}

// BenchmarkTodo is one look at a machine with 64 claims, each of which runs a task.
func BenchmarkTodo(b *testing.B) {
	p, _ := Preset("desktop")
	c := New(Options{Policy: p, Name: "n1"})
	now, job := Instant(time.Hour), classad.New()
	job.SetInt("Walltime", 3600)
	c.Observe(now, time.Unix(1.7e9, 0), Signs{})
	var all []Tenant
	for id := range uint64(64) {
		all = append(all, Tenant{ID: id + 1, Job: job, Running: true, Began: now})
	}
	c.Tenants(now, all)
	c.Todo(now)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second
		c.Observe(now, time.Unix(1.7e9, 0), Signs{})
		if orders, _ := c.Todo(now); len(orders) > 0 {
			b.Fatal(tell(orders[0]))
		}
	}
}
