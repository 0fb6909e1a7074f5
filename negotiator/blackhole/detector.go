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
	Succeeded    AttemptVerdict = iota // the program ended well, or ran as long as it was to
	Failed                             // the program failed: the job's fault, or the machine's
	MachineFault                       // the machine says that it was its own fault
)

// NodeSubmitter is who submitted a job: an owner at one submit node. No owner stands for
// all of that node.
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

// Detector is what is known. The zero value knows nothing. It is for one goroutine.
type Detector struct {
	machines         map[string]*machineRecord
	jobs             map[nodeJob]*outcomeCounts // of the outcomes that are remembered; so the next two
	submitters       map[NodeSubmitter]*outcomeCounts
	total            outcomeCounts
	avoided          map[avoidanceKey]*avoidancePeriod
	pairs            map[failurePairKey]*failureCount
	pendingMachines  map[string]bool // machines of which something has ended since they were last judged
	drainedOrOnTrial map[string]bool // machines that are drained or on trial
	lastSweep        time.Time
}

// nodeJob is a job as the node says that submitted it: no node speaks of the jobs of
// another.
type nodeJob struct{ node, id string }

func (o *AttemptOutcome) job() nodeJob { return nodeJob{o.Node, o.Job} }

// outcomeCounts counts outcomes.
type outcomeCounts struct{ succeeded, failed, machineFaults int } // spoiled are among the bad

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

// mostlyMachineFaults reports whether many of the outcomes were spoiled.
func (t outcomeCounts) mostlyMachineFaults() bool { return 4*t.machineFaults > t.succeeded+t.failed }

// machineRecord is one of which something has ended.
type machineRecord struct {
	events            []outcomeEvent // oldest first
	state             machineState
	drainedUntil      time.Time     // drained: when that is over
	lastDrainDuration time.Duration // for how long it was drained the last time
	reason            string
	onTrial           outcomeCounts // since the trial began
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

// AddOutcome takes in the end of an attempt. If the task is to be kept from that machine
// from now on, it says so.
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

// countOutcome takes an outcome into the sums, or out of them.
func (b *Detector) countOutcome(o *AttemptOutcome, by int) {
	b.total.add(o, by)
	addToCounts(b.jobs, o.job(), o, by)
	addToCounts(b.submitters, o.NodeSubmitter, o, by)
}

// addToCounts counts an outcome in one of several sums, which are there only while there
// is something in them.
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

// makeRoom forgets what one more outcome of a job has no room beside. Of one job only the
// last few count, and of a machine whose room is used up the oldest goes of whoever has
// most: neither an array of any length nor one owner's many jobs push out what befell the
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

// oldestOfBusiestSubmitter is the oldest outcome of the submitter of whom a machine has
// most.
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

// dropOldest forgets n outcomes of a machine.
func (b *Detector) dropOldest(m *machineRecord, at, n int) {
	for i := range m.events[at : at+n] {
		b.countOutcome(&m.events[at+i].AttemptOutcome, -1)
	}
	m.events = slices.Delete(m.events, at, at+n)
}

// dropExpired forgets what is too old to count, at most once in a while.
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

// check panics if the sums are not those of what is remembered.
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
