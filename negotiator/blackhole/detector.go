package blackhole

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// AttemptVerdict says how an attempt ended.
type AttemptVerdict uint8

// The verdicts.
const (
	Succeeded    AttemptVerdict = iota // the program succeeded, or ran up to its limit
	Failed                             // the program failed, through the job or the machine
	MachineFault                       // the machine reports its own fault
)

// NodeSubmitter is an owner at one submit node. An empty owner stands for the whole node.
type NodeSubmitter struct{ Node, Owner string }

// AttemptOutcome is the end of an attempt.
type AttemptOutcome struct {
	Machine string
	Task    string // "12[3].host"
	Job     string // "12.host"
	NodeSubmitter
	Verdict AttemptVerdict
	RunTime time.Duration
	Reason  string // of a failure, for people
}

func (o *AttemptOutcome) failedQuickly() bool {
	return o.Verdict != Succeeded && o.RunTime < QuickRuntime
}

// Detector is the state of the detection. The zero value is empty. It is not safe for
// concurrent use.
type Detector struct {
	machines         map[string]*machineRecord
	jobs             map[nodeJob]*outcomeCounts // sums of the stored outcomes, as are the next two
	submitters       map[NodeSubmitter]*outcomeCounts
	total            outcomeCounts
	avoided          map[avoidanceKey]*avoidancePeriod
	pairs            map[failurePairKey]*failureCount
	pendingMachines  map[string]bool // machines with outcomes since they were last checked
	drainedOrOnTrial map[string]bool // machines that are drained or on trial
	lastSweep        time.Time
}

// nodeJob is a job of a submit node. No node can report about the jobs of another.
type nodeJob struct{ node, id string }

func (o *AttemptOutcome) job() nodeJob { return nodeJob{o.Node, o.Job} }

// outcomeCounts counts outcomes.
type outcomeCounts struct{ succeeded, failed, machineFaults int } // failed includes machineFaults

func (t *outcomeCounts) add(o *AttemptOutcome, by int) {
	switch {
	case !o.failedQuickly():
		t.succeeded += by
		return
	case o.Verdict == MachineFault:
		t.machineFaults += by
	}
	t.failed += by
}

func (t outcomeCounts) minus(o outcomeCounts) outcomeCounts {
	return outcomeCounts{t.succeeded - o.succeeded, t.failed - o.failed, t.machineFaults - o.machineFaults}
}

// mostlyMachineFaults reports whether more than a quarter of the outcomes are machine
// faults.
func (t outcomeCounts) mostlyMachineFaults() bool { return 4*t.machineFaults > t.succeeded+t.failed }

// machineRecord is the state of a machine with outcomes.
type machineRecord struct {
	events            []outcomeEvent // oldest first
	state             machineState
	drainedUntil      time.Time     // drained: end of the drain
	lastDrainDuration time.Duration // length of the last drain
	reason            string
	onTrial           outcomeCounts // since the trial began
	isPilot           bool          // drained: it was a pilot
}

type outcomeEvent struct {
	at time.Time
	AttemptOutcome
}

type machineState uint8

const (
	trusted machineState = iota
	drained
	onTrial
)

// AddOutcome adds the end of an attempt. If the task must avoid the machine from now on,
// it returns the pair.
func (b *Detector) AddOutcome(now time.Time, o AttemptOutcome) (pair AvoidPair, ok bool) {
	b.initMaps()
	b.pendingMachines[o.Machine] = true
	m := b.machines[o.Machine]
	if m == nil {
		m = &machineRecord{}
		b.machines[o.Machine] = m
	}
	b.makeRoom(m, &o)
	m.events = append(m.events, outcomeEvent{now, o})
	b.countOutcome(&o, 1)
	if m.state == onTrial {
		m.onTrial.add(&o, 1)
	}
	return b.countPairFailure(now, &o)
}

func (b *Detector) initMaps() {
	if b.machines == nil {
		b.machines, b.jobs, b.pairs, b.avoided = map[string]*machineRecord{}, map[nodeJob]*outcomeCounts{},
			map[failurePairKey]*failureCount{}, map[avoidanceKey]*avoidancePeriod{}
		b.submitters = map[NodeSubmitter]*outcomeCounts{}
		b.pendingMachines, b.drainedOrOnTrial = map[string]bool{}, map[string]bool{}
	}
}

// countOutcome adds an outcome to the sums, or removes it.
func (b *Detector) countOutcome(o *AttemptOutcome, by int) {
	b.total.add(o, by)
	addToCounts(b.jobs, o.job(), o, by)
	addToCounts(b.submitters, o.NodeSubmitter, o, by)
}

// addToCounts adds an outcome to one of several sums. Empty sums are deleted.
func addToCounts[K comparable](sums map[K]*outcomeCounts, key K, o *AttemptOutcome, by int) {
	t := sums[key]
	if t == nil {
		t = &outcomeCounts{}
		sums[key] = t
	}
	if t.add(o, by); *t == (outcomeCounts{}) {
		delete(sums, key)
	}
}

// makeRoom drops an outcome so that one more of a job fits. Of one job only the last few
// count. If a machine's space is used up, the oldest one of the submitter with the most
// is dropped. So neither a long array nor one owner's many jobs displace the outcomes of
// others.
func (b *Detector) makeRoom(m *machineRecord, o *AttemptOutcome) {
	alike, first := 0, -1
	for i := range m.events {
		if m.events[i].job() == o.job() && m.events[i].failedQuickly() == o.failedQuickly() {
			if alike++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case alike >= maxEventsPerJob:
		b.dropOldest(m, first, 1)
	case len(m.events) >= maxEventsPerMachine:
		b.dropOldest(m, m.oldestOfBusiestSubmitter(), 1)
	}
}

// oldestOfBusiestSubmitter returns the oldest outcome of the submitter with the most
// outcomes on a machine.
func (m *machineRecord) oldestOfBusiestSubmitter() (at int) {
	type group struct{ first, size int }
	groups, most := map[NodeSubmitter]*group{}, 0
	for i := range m.events {
		g := groups[m.events[i].NodeSubmitter]
		if g == nil {
			g = &group{first: i}
			groups[m.events[i].NodeSubmitter] = g
		}
		g.size++
	}
	for _, g := range groups {
		if g.size > most || g.size == most && g.first < at {
			at, most = g.first, g.size
		}
	}
	return at
}

// dropOldest drops n outcomes of a machine.
func (b *Detector) dropOldest(m *machineRecord, at, n int) {
	for i := range m.events[at : at+n] {
		b.countOutcome(&m.events[at+i].AttemptOutcome, -1)
	}
	m.events = slices.Delete(m.events, at, at+n)
}

// dropExpired drops outcomes that are too old, at most once in a while.
func (b *Detector) dropExpired(now time.Time) {
	if now.Sub(b.lastSweep) < OutcomeWindow/20 && !now.Before(b.lastSweep) {
		return
	}
	b.lastSweep = now
	for name, m := range b.machines {
		old := 0
		for old < len(m.events) && now.Sub(m.events[old].at) >= OutcomeWindow {
			old++
		}
		b.dropOldest(m, 0, old)
		if len(m.events) == 0 && m.state == trusted && now.Sub(m.drainedUntil) > MaxDrainDuration {
			delete(b.machines, name)
		}
	}
	for key, t := range b.pairs {
		if now.Sub(t.lastAt) > roost.MaxAvoidDuration {
			delete(b.pairs, key)
		}
	}
	for key, a := range b.avoided {
		if now.Sub(a.until) > roost.MaxAvoidDuration {
			delete(b.avoided, key)
		}
	}
}

// check panics if the sums do not match the stored outcomes.
func (b *Detector) check() {
	var all outcomeCounts
	jobs, users := map[nodeJob]*outcomeCounts{}, map[NodeSubmitter]*outcomeCounts{}
	for name, m := range b.machines {
		of := map[nodeJob]int{}
		for i := range m.events {
			o := &m.events[i].AttemptOutcome
			all.add(o, 1)
			addToCounts(jobs, o.job(), o, 1)
			addToCounts(users, o.NodeSubmitter, o, 1)
			if of[o.job()]++; of[o.job()] > 2*maxEventsPerJob || len(m.events) > maxEventsPerMachine {
				panic(fmt.Sprintf("suspect: of %s %d outcomes are remembered, %d of job %s", name, len(m.events),
					of[o.job()], o.Job))
			}
		}
	}
	equal := func(x, y *outcomeCounts) bool { return *x == *y }
	if all != b.total || !maps.EqualFunc(jobs, b.jobs, equal) || !maps.EqualFunc(users, b.submitters, equal) {
		panic(fmt.Sprintf("suspect: %v, %v and %v are counted, and it is %v, %v and %v", b.total, b.jobs, b.submitters,
			all, jobs, users))
	}
}
