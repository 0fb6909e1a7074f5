package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// desktopPool runs a pool of one desktop with two cores and two jobs. The owner policy
// suspends tasks at once, resumes them 10 s after the owner has left, vacates them after
// a minute of suspension, and accepts claims 20 s after the owner has left. The jobs have
// one task of 30 s and one core each, and come at first and at second.
func desktopPool(t *testing.T, first, second time.Duration, then func(*Pool)) (seen []audit.Event) {
	t.Helper()
	policy, err := policy.NewPolicy(policy.PolicySettings{
		Preset: "desktop", StartAfter: 20 * time.Second, ResumeAfter: 10 * time.Second, LeaveAfter: time.Minute,
		Vacate: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	machine := MachineConfig{Name: "desk", Resources: roost.Resources{CPU: 2000, Memory: 4 << 30, Disk: 1 << 30},
		OwnerPolicy: &policy}
	c := SimulationConfig{Seed: 1, Managers: 1, Schedds: 1, SelfCheck: true, Machines: []MachineConfig{machine}}
	for _, at := range []time.Duration{first, second} {
		ad := classad.New()
		ad.SetInt(roost.AttrRequestCpus, 1)
		ad.SetInt(roost.AttrRequestMemory, 512)
		ad.SetInt(roost.AttrJobLease, 3600)
		c.Jobs = append(c.Jobs, JobConfig{At: at, Owner: "ann", Spec: queue.SubmitSpec{Ad: ad, Count: 1},
			Runtimes: []time.Duration{30 * time.Second}})
	}
	a := audit.New(audit.DefaultRules())
	c.Observe = func(s audit.Event) {
		a.Observe(s)
		seen = append(seen, s)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	then(p)
	p.CallAt(5*time.Minute, func() { a.Observe(audit.Event{At: p.Now(), Type: audit.FaultsEnded}) })
	if !p.RunToEnd(time.Hour) {
		t.Fatal("not all has come to its end")
	}
	p.RunUntil(p.Now() + time.Minute)
	a.Finish(p.Now())
	for _, b := range a.Violations() {
		t.Errorf("%v", b.String())
	}
	return seen
}

// nthSeen returns the time of the nth event, from 1, whose text contains words; 0 if
// there is none.
func nthSeen(seen []audit.Event, n int, words string) time.Duration {
	for _, s := range seen {
		if strings.Contains(s.String(), words) {
			if n--; n == 0 {
				return s.At
			}
		}
	}
	return 0
}

// TestOwnerComes checks that tasks are suspended while the owner is present, and then
// resume or leave by the policy. The machine accepts no claims meanwhile. If the startd
// is stopped or dead, the guard freezes the tasks.
func TestOwnerComes(t *testing.T) {
	const first, second = "attempt 1 of 1[0].schedd0 ", "attempt 1 of 2[0].schedd0 "
	type at struct {
		words string
		n     int
		at    time.Duration // in whole seconds
	}
	for name, c := range map[string]struct {
		second time.Duration // when the second job comes
		then   func(*Pool)
		want   []at
	}{
		"he goes soon": {
			15 * time.Second, func(p *Pool) {
				p.CallAt(10*time.Second, func() { p.OwnerComes("desk", 10*time.Second) })
			},
			[]at{
				{"somebody sits down", 1, 10 * time.Second}, {first + "stands still", 1, 10 * time.Second},
				{"desk: lends 0 cores", 2, 10 * time.Second},
				{"he leaves", 1, 20 * time.Second}, {first + "goes on", 1, 30 * time.Second},
				{"lends 2 cores", 2, 40 * time.Second}, {second + "begins", 1, 40 * time.Second},
				{first + "has no process", 1, 51 * time.Second}, {second + "has no process", 1, 70 * time.Second},
			},
		},
		"he stays": {
			0, func(p *Pool) { p.CallAt(10*time.Second, func() { p.OwnerComes("desk", 2*time.Minute) }) },
			[]at{
				{first + "stands still", 1, 10 * time.Second}, {first + "has no process", 1, 70 * time.Second},
				{first + "goes on", 1, 0},
				{"he leaves", 1, 130 * time.Second}, {"attempt 2 of 1[0].schedd0 begins", 1, 150 * time.Second},
				{"attempt 2 of 2[0].schedd0 begins", 1, 150 * time.Second},
			},
		},
		"the startd is stopped": {
			0, func(p *Pool) {
				p.CallAt(9*time.Second, func() { p.Faults().PauseDaemon("desk", 20*time.Second) })
				p.CallAt(10*time.Second, func() { p.OwnerComes("desk", 5*time.Second) })
			},
			[]at{{first + "stands still", 1, 10 * time.Second}, {first + "goes on", 1, 39 * time.Second},
				{first + "has no process", 1, 59 * time.Second}},
		},
		"the startd is dead": {
			0, func(p *Pool) {
				p.CallAt(9*time.Second, func() { p.Faults().CrashDaemon("desk", 10*time.Second) })
				p.CallAt(10*time.Second, func() { p.OwnerComes("desk", 15*time.Second) })
			},
			[]at{
				{first + "stands still", 1, 10 * time.Second}, {"he leaves", 1, 25 * time.Second},
				{first + "goes on", 1, 35 * time.Second},
				{first + "has no process", 1, 55 * time.Second},
			},
		},
		"the startd dies, and he goes meanwhile": {
			0, func(p *Pool) {
				p.CallAt(10*time.Second, func() { p.OwnerComes("desk", 5*time.Second) })
				p.CallAt(12*time.Second, func() { p.Faults().CrashDaemon("desk", 30*time.Second) })
			},
			[]at{
				{first + "stands still", 1, 10 * time.Second}, {"he leaves", 1, 15 * time.Second},
				{first + "goes on", 1, 42 * time.Second},
				{first + "has no process", 1, 62 * time.Second},
			},
		},
		"the guard dies": {
			15 * time.Second, func(p *Pool) {
				p.CallAt(10*time.Second, func() { p.GuardDies("desk", 20*time.Second) })
			},
			[]at{
				{first + "stands still", 1, 13 * time.Second}, {"lends 0 cores", 2, 13 * time.Second},
				{"guard is heard of again", 1, 31 * time.Second},
				{first + "goes on", 1, 31 * time.Second}, {second + "begins", 1, 31 * time.Second},
			},
		},
		"the guard dies for a moment": {
			0, func(p *Pool) { p.CallAt(10*time.Second, func() { p.GuardDies("desk", 500*time.Millisecond) }) },
			[]at{{"nothing is heard", 1, 0}, {first + "stands still", 1, 0},
				{first + "has no process", 1, 30 * time.Second}},
		},
		"the guard dies, and he comes": {
			0, func(p *Pool) {
				p.CallAt(10*time.Second, func() { p.GuardDies("desk", 2*time.Second) })
				p.CallAt(11*time.Second, func() { p.OwnerComes("desk", 20*time.Second) })
			},
			[]at{{"a guard has looked", 1, 13 * time.Second}, {first + "stands still", 1, 13 * time.Second},
				{first + "goes on", 1, 41 * time.Second}},
		},
		"the guard dies, and the startd": {
			0, func(p *Pool) {
				p.CallAt(10*time.Second, func() { p.GuardDies("desk", 20*time.Second) })
				p.CallAt(11*time.Second, func() { p.Faults().CrashDaemon("desk", 5*time.Second) })
			},
			[]at{{first + "stands still", 1, 18 * time.Second}, {"nothing is heard", 1, 19 * time.Second},
				{first + "goes on", 1, 31 * time.Second}},
		},
		"the startd dies, and the guard that has stopped its task": {
			0, func(p *Pool) {
				p.CallAt(9*time.Second, func() { p.Faults().CrashDaemon("desk", 20*time.Second) })
				p.CallAt(10*time.Second, func() { p.OwnerComes("desk", 5*time.Second) })
				p.CallAt(12*time.Second, func() { p.GuardDies("desk", 5*time.Second) })
			},
			[]at{{first + "stands still", 1, 10 * time.Second}, {first + "goes on", 1, 29 * time.Second}},
		},
		"the host sleeps": {
			0, func(p *Pool) { p.CallAt(10*time.Second, func() { p.Faults().SuspendHost("desk", 10*time.Second) }) },
			[]at{{"desk: wakes", 1, 20 * time.Second}, {first + "stands still", 1, 20 * time.Second},
				{first + "goes on", 1, 40 * time.Second}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := desktopPool(t, time.Second, c.second, c.then)
			for _, want := range c.want {
				if got := nthSeen(seen, want.n, want.words); got.Truncate(time.Second) != want.at {
					t.Errorf("%q is seen at %v, want %v", want.words, got, want.at)
				}
			}
			for _, s := range seen {
				if t.Failed() {
					t.Log(s.At, s)
				}
			}
		})
	}
}
