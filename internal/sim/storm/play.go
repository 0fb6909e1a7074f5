package storm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	points "github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/fault"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Kinds are the kinds of faults that a simulated pool knows: all.
func Kinds() []fault.Kind { return fault.Kinds() }

// Points are the named instants at which a node's daemon can be made to die.
func Points(node string) []string {
	switch {
	case strings.HasPrefix(node, scheddPrefix):
		return []string{
			points.ScheddBeforeAppend, points.ScheddAfterAppend, points.ScheddAfterFsync, points.ScheddAfterAnswer, points.ScheddAfterActivate,
			points.ScheddOutputCopied, points.ScheddExitRecorded,
		}
	case strings.HasPrefix(node, managerPrefix):
		return []string{points.NegotiatorBeforeGrant, points.NegotiatorAfterGrant}
	}
	return []string{points.StartdAfterClaim, points.StartdBeforeStarter, points.StartdAfterStarter, points.StartdBeforeExitSent}
}

// play is a case that is played.
type play struct {
	*Case
	pool    *pool.Pool
	auditor *audit.Auditor
	armed   []fault.Fault // crashes that wait for their points
	outcome Outcome
}

// rest is for how long a run goes on when everything has come to its end: what was left behind by somebody shows only then.
const rest = 2 * time.Minute

// Play plays a case until a promise breaks, or all has come to its end.
func Play(c *Case) *Outcome { return played(c, true) }

// Twice plays a case and, if no promise was broken, plays it again. If that does not come out the same, nothing that a seed shows can be looked at
// again, and that is held against it.
func Twice(c *Case) *Outcome {
	o := Play(c)
	if len(o.Breaches) > 0 {
		return o
	}
	if again := Play(c); again.Digest != o.Digest || again.Events != o.Events {
		text := fmt.Sprintf("%d events with the digest %016x, and played again %d with %016x", o.Events, o.Digest, again.Events, again.Digest)
		o.Breaches = []audit.Breach{{At: o.Ended, Text: text}}
	}
	return o
}

// played plays a case. A core that finds its books wrong panics: that is held against it, or goes on to who wants to see where.
func played(c *Case, caught bool) *Outcome {
	r := &play{Case: c, auditor: audit.New(audit.DefaultRules())}
	var err error
	if r.pool, err = pool.New(r.config()); err != nil {
		panic(fmt.Sprintf("storm: a case that cannot be played: %v", err)) // it was drawn here
	}
	for _, f := range c.Faults {
		r.pool.At(f.At, func() { r.inject(f) })
	}
	r.pool.At(c.Calm, r.calm)
	r.run(caught)
	if len(r.auditor.Broken()) == 0 {
		r.auditor.Finish(r.pool.Now())
	}
	o := &r.outcome
	o.Breaches, o.Events, o.Digest, o.Ended = r.auditor.Broken(), r.pool.Events(), r.pool.Digest(), r.pool.Now()
	return o
}

// run lets things happen.
func (r *play) run(caught bool) {
	if caught {
		defer func() {
			if wrong := recover(); wrong != nil {
				r.auditor.Contradiction(r.pool.Now(), fmt.Sprint(wrong))
			}
		}()
	}
	end := r.Until
	for at, ok := r.pool.Peek(); ok && at <= end; at, ok = r.pool.Peek() {
		if r.pool.Next(); len(r.auditor.Broken()) > 0 {
			return
		}
		if now := r.pool.Now(); now > r.Calm && r.pool.Done() {
			end = min(end, now+rest)
		}
	}
}

// config is the pool of the case.
func (r *play) config() pool.Config {
	cfg := pool.Config{
		Seed: r.Seed, Managers: r.Managers, Schedds: r.Schedds, Times: pool.DefaultTimes(), Checks: !r.Unchecked, Spelt: true, Observe: r.see, Point: r.point,
	}
	for i := range r.Machines {
		m := &r.Machines[i]
		cfg.Machines = append(cfg.Machines, pool.Machine{Name: machineName(m.Number), Resources: m.resources(), Owner: m.Desk.policy(), Lies: m.Lies})
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		cfg.Jobs = append(cfg.Jobs, j.config())
		for _, a := range j.Acts {
			cfg.Acts = append(cfg.Acts, pool.Act{At: j.At + a.After, Job: i, Verb: a.Verb.wire()})
		}
	}
	return cfg
}

// config is the job as the pool has it.
func (j *Job) config() pool.Job {
	ad := classad.New()
	ad.SetInt(roost.AttrRequestCpus, int64(j.Cores))
	ad.SetInt(roost.AttrRequestMemory, int64(j.resources().Memory/roost.MiB))
	ad.SetInt(roost.AttrJobLease, int64(j.Lease/time.Second))
	ad.SetInt(roost.AttrMaxRetries, int64(j.Tries))
	return pool.Job{
		At: j.At, Schedd: j.Schedd, Spec: queue.Spec{Ad: ad, Count: j.Tasks}, Owner: fmt.Sprintf("user%d", j.User+1), Run: []time.Duration{j.Length},
		Codes: []int32{j.Code}, Output: true, Again: j.Again,
	}
}

func (v Verb) wire() wire.ActRequest_Verb {
	switch v {
	case Hold:
		return wire.ActRequest_HOLD
	case Release:
		return wire.ActRequest_RELEASE
	}
	return wire.ActRequest_REMOVE
}

// see passes on what is seen.
func (r *play) see(s audit.Seen) {
	if s.What == audit.Completed || s.What == audit.Removed {
		r.outcome.Tasks++
	}
	r.auditor.See(s)
}

// calm ends what may still come.
func (r *play) calm() {
	r.armed = nil
	r.auditor.See(audit.Seen{At: r.pool.Now(), What: audit.Calm})
}

// point says whether a daemon that passes a named instant is to die there.
func (r *play) point(node, point string) bool {
	for i := range r.armed {
		f := &r.armed[i]
		if f.Node != node || f.Point != point {
			continue
		}
		if f.N--; f.N > 0 {
			continue
		}
		back := min(f.For, r.Calm-r.pool.Now())
		r.happened(fault.Fault{Kind: fault.Crash, Node: node, Point: point, N: 1, For: f.For})
		r.armed = slices.Delete(r.armed, i, i+1)
		r.pool.At(r.pool.Now(), func() { r.pool.Crash(node, back) }) // it has died there, and is to come back
		return true
	}
	return false
}

// happened notes that there was a fault.
func (r *play) happened(f fault.Fault) {
	r.outcome.Injected[f.Kind]++
	r.auditor.See(audit.Seen{At: r.pool.Now(), What: audit.Injected, Node: f.Node, Note: f.String()})
}

// inject has a fault happen.
func (r *play) inject(f fault.Fault) {
	if f.Kind == fault.Crash && f.Point != "" {
		r.armed = append(r.armed, f)
		return
	}
	r.happened(f)
	p := r.pool
	switch f.Kind {
	case fault.Crash:
		p.Crash(f.Node, f.For)
	case fault.Reboot:
		p.Reboot(f.Node, f.For)
	case fault.Tear:
		p.Tear(f.Node)
	case fault.Pause:
		p.Pause(f.Node, f.For)
	case fault.Suspend:
		p.Suspend(f.Node, f.For)
	case fault.Cut:
		p.Cut(f.Node, f.Peer, f.For)
	case fault.Slow:
		p.Delay(f.Node, f.Peer, f.Amount, f.For)
	case fault.Break:
		p.Break(f.Node, f.Peer)
	case fault.Step:
		p.Step(f.Node, f.Amount)
	case fault.SlowDisk:
		p.SlowDisk(f.Node, f.Amount, f.For)
	case fault.FullDisk:
		p.FullDisk(f.Node, f.For)
	case fault.SlowNode:
		p.SlowNode(f.Node, f.Amount, f.For)
	case fault.OwnerComes:
		p.OwnerComes(f.Node, f.For)
	case fault.GuardDies:
		p.GuardDies(f.Node, f.For)
	case fault.TakesAddr:
		p.TakesAddress(f.Node, f.Peer, f.For)
	case fault.Flip:
		p.Flip(f.Node, f.N, f.For)
	default:
		panic(fmt.Sprintf("storm: %v", f))
	}
}
