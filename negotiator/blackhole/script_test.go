package blackhole

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/script"
)

// TestStories runs the scripts in testdata. Commands:
//
//	pool N [drained [nodes]]   number of machines, of those drained by an administrator,
//	                           and of submit nodes
//	pilot MACHINE OWNER        a pilot of OWNER@NODE
//	ended MACHINE VERDICT TASK OWNER [RAN] [TIMES]
//	                           attempts end: good, failed or spoiled; the job is the task
//	                           up to its "["; OWNER@NODE submits on that node
//	tick DURATION
//	trust MACHINE
//
// After each command the machines are checked, and new decisions are printed.
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		p := &scriptRunner{t: t, now: time.Unix(1000, 0), pilots: map[string]string{}}
		return p.runCommand
	})
}

type scriptRunner struct {
	t        *testing.T
	detector Detector
	now      time.Time
	pool     PoolCounts
	pilots   map[string]string // owners by machine
}

func (p *scriptRunner) runCommand(s script.ScriptCommand) string {
	var b strings.Builder
	lines := append([]string{strings.Join(s.Args, " ")}, s.Input...)
	for _, line := range lines {
		args := strings.Fields(line)
		switch {
		case len(args) == 0:
		case s.Command == "pool":
			p.pool = PoolCounts{SubmitNodes: 1, IsPilotOf: func(machine string, who NodeSubmitter) bool {
				return p.pilots[machine] == who.Owner+"@"+who.Node
			}}
			fmt.Sscan(line, &p.pool.Machines, &p.pool.Drained, &p.pool.SubmitNodes)
		case s.Command == "pilot":
			p.pilots[args[0]] = args[1]
		case s.Command == "ended":
			p.endAttempt(args, &b)
		case s.Command == "trust":
			p.detector.ClearMachine(args[0])
		case s.Command == "tick":
			d, err := time.ParseDuration(args[0])
			if err != nil {
				p.t.Fatal(err)
			}
			p.now = p.now.Add(d)
		default:
			p.t.Fatalf("unknown command %s", s.Command)
		}
	}
	drains, avoided := p.detector.DetectBlackHoles(p.now, p.pool)
	for _, d := range drains {
		fmt.Fprintf(&b, "%s is drained for %v: %s\n", d.Machine, d.Until.Sub(p.now), d.Reason)
	}
	for _, a := range avoided {
		fmt.Fprintf(&b, "%s is avoided by %s for %v: %s\n", a.Machine, strings.Trim(a.Owner+"@"+a.Node, "@"),
			a.Until.Sub(p.now), a.Reason)
	}
	if list := p.detector.MachinesOnTrial(p.now); len(list) > 0 {
		fmt.Fprintf(&b, "on trial: %s\n", strings.Join(list, " "))
	}
	p.detector.check()
	return b.String()
}

func (p *scriptRunner) endAttempt(args []string, b *strings.Builder) {
	o := AttemptOutcome{Machine: args[0], Task: args[2], RunTime: time.Second}
	o.Owner, o.Node, _ = strings.Cut(args[3], "@")
	o.Job, _, _ = strings.Cut(o.Task, "[")
	o.Verdict = map[string]AttemptVerdict{"good": Succeeded, "failed": Failed, "spoiled": MachineFault}[args[1]]
	if o.Verdict == MachineFault {
		o.Reason = "no scratch directory"
	}
	if len(args) > 4 {
		o.RunTime, _ = time.ParseDuration(args[4])
	}
	times := 1
	if len(args) > 5 {
		fmt.Sscan(args[5], &times)
	}
	for range times {
		if a, ok := p.detector.AddOutcome(p.now, o); ok {
			fmt.Fprintf(b, "%s is kept from %s for %v: %s\n", a.Task, a.Machine, a.Until.Sub(p.now), a.Reason)
		}
	}
}

// TestArrays lets long arrays of two users run on a black hole one after the other, as
// from a queue. Neither may displace the outcomes of the other.
func TestArrays(t *testing.T) {
	var b Detector
	now := time.Unix(1000, 0)
	for array := range 4 {
		for task := range 150 {
			now = now.Add(70 * time.Millisecond)
			job := fmt.Sprint(array, ".s")
			b.AddOutcome(now, AttemptOutcome{Machine: "hole", Job: job, Task: fmt.Sprintf("%s[%d]", job, task),
				NodeSubmitter: NodeSubmitter{"s", fmt.Sprint("u", array/2)}, Verdict: MachineFault})
			drains, _ := b.DetectBlackHoles(now, PoolCounts{Machines: 3, SubmitNodes: 1})
			if len(drains) == 1 && drains[0].Machine == "hole" && array >= 2 {
				return
			}
			if len(drains) > 0 {
				t.Fatalf("task %d of array %d: got %v", task, array, drains)
			}
		}
	}
	t.Error("the hole is not drained after 600 attempts")
}

// TestRandomOutcomes adds many outcomes. The sums must be right after each, one user's
// jobs must drain nothing, and never may too many machines be drained.
func TestRandomOutcomes(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b Detector
		now, pool, hole := time.Unix(1000, 0), 1+r.IntN(30), r.IntN(3)
		for step := range 400 {
			now = now.Add(time.Duration(r.IntN(5)) * time.Second)
			job := r.IntN(20)
			o := AttemptOutcome{
				Machine: fmt.Sprint("m", r.IntN(pool)), Job: fmt.Sprint(job),
				Task:          fmt.Sprintf("%d[%d]", job, r.IntN(50)),
				NodeSubmitter: NodeSubmitter{"", fmt.Sprint("u", job%4)},
				RunTime:       time.Duration(r.IntN(100)) * time.Second,
			}
			switch {
			case o.Owner == "u3": // nothing that this user submits works
				o.Verdict, o.RunTime = Failed, time.Second
			case hole == 1 && o.Machine == "m0":
				o.Verdict, o.RunTime = Failed, time.Second
			}
			b.AddOutcome(now, o)
			drains, avoided := b.DetectBlackHoles(now, PoolCounts{Machines: pool, SubmitNodes: 1})
			for _, a := range avoided {
				drains = append(drains, AutomaticDrain{Machine: a.Machine, Reason: a.Reason})
			}
			for _, d := range drains {
				if hole != 1 || d.Machine != "m0" {
					t.Fatalf("seed %d: %s is drained: %s", seed, d.Machine, d.Reason)
				}
			}
			if n := len(b.DrainedMachines(now)); n > max(1, pool/DrainFraction) || n >= pool {
				t.Fatalf("seed %d: %d of %d machines are drained", seed, n, pool)
			}
			if step%10 == 0 {
				b.check()
			}
		}
		b.check()
	}
}
