package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	points "github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// FaultKinds returns the kinds of faults that a simulated pool knows: all of them.
func FaultKinds() []faults.InjectionKind { return faults.AllKinds() }

// Failpoints returns the failpoints at which a node's daemon can be made to crash.
func Failpoints(node string) []string {
	switch {
	case strings.HasPrefix(node, scheddPrefix), strings.HasPrefix(node, memberPrefix):
		return []string{
			points.ScheddBeforeAppend, points.ScheddAfterAppend, points.ScheddAfterFsync, points.ScheddAfterAnswer,
			points.ScheddAfterActivate,
			points.ScheddAfterOutputCopied, points.ScheddAfterExitRecorded,
		}
	case strings.HasPrefix(node, managerPrefix):
		return []string{points.NegotiatorBeforeGrant, points.NegotiatorAfterGrant}
	}
	return []string{points.StartdAfterClaim, points.StartdBeforeStarter, points.StartdAfterStarter,
		points.StartdBeforeExitSent, points.StartdInResize, points.StartdAfterResize}
}

// caseRun is the state of a case's run.
type caseRun struct {
	*PoolCase
	pool         *pool.Pool
	auditor      *audit.Auditor
	armedCrashes []faults.Fault // crashes that wait for their failpoints
	outcome      RunOutcome
}

// finishTime is how long a run lasts after all tasks have ended. Only then does it show
// what a daemon has leaked.
const finishTime = 2 * time.Minute

// RunCase runs a case until a guarantee is violated or everything has ended.
func RunCase(c *PoolCase) *RunOutcome { return runCase(c, true) }

// RunTwice runs a case, and if it has no violation runs it again. A second run that
// differs is a violation: failures of such a seed could not be reproduced.
func RunTwice(c *PoolCase) *RunOutcome {
	o := RunCase(c)
	if len(o.Violations) > 0 {
		return o
	}
	if again := RunCase(c); again.Digest != o.Digest || again.Events != o.Events {
		text := fmt.Sprintf("%d events with the digest %016x, and played again %d with %016x", o.Events, o.Digest,
			again.Events, again.Digest)
		o.Violations = []audit.Violation{{At: o.Ended, Description: text}}
	}
	return o
}

// runCase runs a case. A core that finds an invariant broken panics. If caught is set,
// the panic becomes a violation; otherwise it propagates, for a stack trace.
func runCase(c *PoolCase, caught bool) *RunOutcome {
	r := &caseRun{PoolCase: c, auditor: audit.New(audit.DefaultRules())}
	var err error
	if r.pool, err = pool.New(r.poolConfig()); err != nil {
		panic(fmt.Sprintf("storm: a case that cannot be played: %v", err)) // drawn by this package, so always valid
	}
	for _, f := range c.Faults {
		r.pool.CallAt(f.At, func() { r.injectFault(f) })
	}
	r.pool.CallAt(c.FaultsEnd, r.afterFaults)
	r.runEvents(caught)
	if len(r.auditor.Violations()) == 0 {
		r.auditor.Finish(r.pool.Now())
	}
	o := &r.outcome
	o.Violations, o.Events, o.Digest, o.Ended = r.auditor.Violations(), r.pool.Events(), r.pool.Digest(), r.pool.Now()
	return o
}

// runEvents runs the events of the case.
func (r *caseRun) runEvents(caught bool) {
	if caught {
		defer func() {
			if wrong := recover(); wrong != nil {
				r.auditor.CoreContradiction(r.pool.Now(), fmt.Sprint(wrong))
			}
		}()
	}
	end := r.RunEnd
	for at, ok := r.pool.NextTime(); ok && at <= end; at, ok = r.pool.NextTime() {
		if r.pool.RunNext(); len(r.auditor.Violations()) > 0 {
			return
		}
		if now := r.pool.Now(); now > r.FaultsEnd && r.pool.AllEnded() {
			end = min(end, now+finishTime)
		}
	}
}

// poolConfig returns the configuration of the case's pool.
func (r *caseRun) poolConfig() pool.SimulationConfig {
	cfg := pool.SimulationConfig{
		Seed: r.Seed, Managers: r.Managers, Schedds: r.Schedds, CellMembers: r.Members, Times: pool.DefaultTimes(),
		SelfCheck: !r.NoSelfCheck, AdsAsText: true, Observe: r.observe, CrashesAt: r.crashesAt,
	}
	for i := range r.Machines {
		m := &r.Machines[i]
		cfg.Machines = append(cfg.Machines, pool.MachineConfig{Name: machineName(m.Number), Resources: m.resources(),
			OwnerPolicy: m.Owner.ownerPolicy(), UnrequestedOutputs: m.UnrequestedOutputs})
	}
	cfg.Drains = r.poolDrains()
	for i := range r.Jobs {
		j := &r.Jobs[i]
		p := j.poolJob(r.FaultsEnd)
		r.placeInside(j, &p)
		if j.Schedule != nil {
			j.Schedule.addTo(&p, r.clocksAreRight(j))
		}
		p.Flow = j.Flow
		cfg.Jobs = append(cfg.Jobs, p)
		for _, a := range j.Actions {
			cfg.Actions = append(cfg.Actions, a.poolAction(j.At+a.Delay, i))
		}
	}
	return cfg
}

// poolJob returns the job in the form of package pool.
func (j *CaseJob) poolJob(faultsEnd time.Duration) pool.JobConfig {
	ad := classad.New()
	ad.SetInt(roost.AttrRequestCpus, int64(j.Cores))
	ad.SetInt(roost.AttrRequestMemory, int64(j.resources().Memory/roost.MiB))
	ad.SetInt(roost.AttrJobLease, int64(j.Lease/time.Second))
	ad.SetInt(roost.AttrMaxRetries, int64(j.Tries))
	if j.Service == nil && j.Code == 0 && int(j.Length/time.Second)%conditionsEvery == 0 {
		addConditions(ad)
	}
	p := pool.JobConfig{
		At: j.At, Schedd: j.Schedd, InCell: j.InCell, Spec: queue.SubmitSpec{Ad: ad, Count: j.Tasks},
		Owner: fmt.Sprintf("user%d", j.User+1), Runtimes: []time.Duration{j.Length},
		ExitCodes: []int32{j.Code}, Output: true, ResubmitAfter: j.ResubmitAfter,
	}
	if j.Service != nil {
		j.Service.addTo(&p, faultsEnd)
	}
	return p
}

// conditionsEvery is which part of the jobs has conditions. None of them fails: a
// task that does so once more is separated from a machine, which may be the only one.
const conditionsEvery = 4

// addConditions gives a job conditions: a task that starts again is held once, and soon
// released.
func addConditions(ad *classad.Ad) {
	for name, condition := range map[string]string{roost.AttrPeriodicHold: "NumJobStarts > 1 && NumHolds < 1",
		roost.AttrPeriodicRelease: "time() - EnteredCurrentStatus > 5"} {
		if err := ad.SetExpr(name, condition); err != nil {
			panic(err)
		}
	}
}

// poolAction returns the action in the form of package pool.
func (a *UserAction) poolAction(at time.Duration, job int) pool.UserAction {
	p := pool.UserAction{At: at, Job: job}
	switch a.Verb {
	case Update:
		p.Environment = environmentText(a.Revision)
	case Resize:
		p.Resources = roost.Resources{CPU: 1000 * roost.MilliCPU(a.Cores), Memory: roost.Bytes(a.Memory) * roost.GiB}
	case PauseUpdate, ResumeUpdate, UndoUpdate:
		p.Command, _, _ = strings.Cut(a.Verb.String(), " ")
	default:
		p.Verb = a.Verb.wireVerb()
	}
	return p
}

func (v ActionVerb) wireVerb() wire.ActRequest_Verb {
	switch v {
	case Hold:
		return wire.ActRequest_HOLD
	case Release:
		return wire.ActRequest_RELEASE
	}
	return wire.ActRequest_REMOVE
}

// observe passes an event to the auditor.
func (r *caseRun) observe(s audit.Event) {
	if s.Type == audit.Completed || s.Type == audit.Removed {
		r.outcome.Tasks++
	}
	r.auditor.Observe(s)
}

// afterFaults disarms the crashes that still wait, and reports the end of the faults.
func (r *caseRun) afterFaults() {
	r.armedCrashes = nil
	r.auditor.Observe(audit.Event{At: r.pool.Now(), Type: audit.FaultsEnded})
}

// crashesAt reports whether a daemon that passes a failpoint must crash there.
func (r *caseRun) crashesAt(node, point string) bool {
	for i := range r.armedCrashes {
		f := &r.armedCrashes[i]
		if f.Node != node || f.Failpoint != point {
			continue
		}
		if f.N--; f.N > 0 {
			continue
		}
		back := min(f.Duration, r.FaultsEnd-r.pool.Now())
		r.countFault(faults.Fault{Kind: faults.Crash, Node: node, Failpoint: point, N: 1, Duration: f.Duration})
		r.armedCrashes = slices.Delete(r.armedCrashes, i, i+1)
		// it has died at the failpoint; this plans its restart
		r.pool.CallAt(r.pool.Now(), func() { r.pool.Faults().CrashDaemon(node, back) })
		return true
	}
	return false
}

// countFault records that a fault was injected.
func (r *caseRun) countFault(f faults.Fault) {
	r.outcome.Injected[f.Kind]++
	seen := audit.Event{At: r.pool.Now(), Type: audit.Injected, Node: f.Node, Detail: f.String(), Peer: f.Peer}
	switch f.Kind {
	case faults.Pause, faults.Suspend, faults.SlowLink, faults.SlowNode:
		seen.Until = r.pool.Now() + f.Duration + f.Amount
	}
	r.auditor.Observe(seen)
}

// injectFault injects a fault, or arms it if it waits for a failpoint.
func (r *caseRun) injectFault(f faults.Fault) {
	if f.Kind == faults.Crash && f.Failpoint != "" {
		r.armedCrashes = append(r.armedCrashes, f)
		return
	}
	r.countFault(f)
	p := r.pool
	switch f.Kind {
	case faults.Crash:
		p.Faults().CrashDaemon(f.Node, f.Duration)
	case faults.Reboot:
		p.Faults().RebootHost(f.Node, f.Duration)
	case faults.TornWrite:
		p.Faults().TearNextWrite(f.Node)
	case faults.Pause:
		p.Faults().PauseDaemon(f.Node, f.Duration)
	case faults.Suspend:
		p.Faults().SuspendHost(f.Node, f.Duration)
	case faults.Partition:
		p.Faults().CutLink(f.Node, f.Peer, f.Duration)
	case faults.SlowLink:
		p.Faults().DelayLink(f.Node, f.Peer, f.Amount, f.Duration)
	case faults.BreakSessions:
		p.Faults().BreakSessions(f.Node, f.Peer)
	case faults.ClockStep:
		p.Faults().StepClock(f.Node, f.Amount)
	case faults.SlowDisk:
		p.Faults().SlowDisk(f.Node, f.Amount, f.Duration)
	case faults.FullDisk:
		p.Faults().FullDisk(f.Node, f.Duration)
	case faults.SlowNode:
		p.Faults().SlowNode(f.Node, f.Amount, f.Duration)
	case faults.OwnerComes:
		p.OwnerComes(f.Node, f.Duration)
	case faults.GuardDies:
		p.GuardDies(f.Node, f.Duration)
	case faults.TakeAddress:
		p.Faults().TakesAddress(f.Node, f.Peer, f.Duration)
	case faults.BitFlip:
		p.Faults().FlipBit(f.Node, f.N, f.Duration)
	default:
		panic(fmt.Sprintf("storm: %v", f))
	}
}
