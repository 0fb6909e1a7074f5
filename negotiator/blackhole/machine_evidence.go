package blackhole

import (
	"fmt"
	"strings"
	"time"
)

// machineEvidence is what the remembered outcomes of one machine say against it, of all
// submitters or of some.
type machineEvidence struct {
	outcomesHere      outcomeCounts // all outcomes there
	outcomesElsewhere outcomeCounts // those of all other machines
	onTrial           outcomeCounts // since its trial began
	countedFailures   int           // failures that count against it
	jobs              map[nodeJob]bool
	owners            map[string]bool
	nodes             map[string]bool // that submitted those
	// most submitters are told the same of other machines: the pool is at fault, or what
	// it shares
	failuresAreCommon bool
	lastReason        string // reason that was given

	// the same by submitter, and by submit node; nil in these, and where there is too
	// little of it
	bySubmitter map[NodeSubmitter]*machineEvidence
}

func newEvidence() *machineEvidence {
	return &machineEvidence{jobs: map[nodeJob]bool{}, owners: map[string]bool{}, nodes: map[string]bool{}}
}

// collectEvidence collects what counts against a machine: failures within [QuickRuntime]
// that it reports as its own fault, unless other machines say so to the same submitter,
// or those of jobs that go well elsewhere.
func (b *Detector) collectEvidence(now time.Time, m *machineRecord) *machineEvidence {
	e := newEvidence()
	e.onTrial = m.onTrial
	jobs, users := map[nodeJob]*outcomeCounts{}, map[NodeSubmitter]*outcomeCounts{}
	for i := range m.events {
		o := &m.events[i].AttemptOutcome
		addToCounts(jobs, o.job(), o, 1)
		addToCounts(users, o.NodeSubmitter, o, 1)
	}
	counts := make([]bool, len(m.events))
	for i := range m.events {
		o := &m.events[i].AttemptOutcome
		elsewhere := b.jobs[o.job()].minus(*jobs[o.job()])
		counts[i] = o.failedQuickly() && now.Sub(m.events[i].at) < OutcomeWindow &&
			(o.Verdict == MachineFault && !b.submitters[o.NodeSubmitter].minus(*users[o.NodeSubmitter]).
				mostlyMachineFaults() || elsewhere.succeeded > elsewhere.failed)
		e.addFailure(o, counts[i])
	}
	e.outcomesElsewhere = b.total.minus(e.outcomesHere)
	if e.countedFailures < TrialFailures {
		return e
	}
	e.failuresAreCommon, e.bySubmitter = b.failuresAreCommon(users), map[NodeSubmitter]*machineEvidence{}
	for i := range m.events {
		o := &m.events[i].AttemptOutcome
		for _, who := range [...]NodeSubmitter{o.NodeSubmitter, {Node: o.Node}} {
			if e.bySubmitter[who] == nil {
				e.bySubmitter[who] = newEvidence()
				e.bySubmitter[who].outcomesElsewhere, e.bySubmitter[who].failuresAreCommon = e.outcomesElsewhere,
					e.failuresAreCommon
			}
			e.bySubmitter[who].addFailure(o, counts[i])
		}
	}
	return e
}

// failuresAreCommon reports whether most submitters with outcomes on other machines, and
// more than one, have many spoiled ones there.
func (b *Detector) failuresAreCommon(here map[NodeSubmitter]*outcomeCounts) bool {
	n, spoilt := 0, 0
	for who, t := range b.submitters {
		rest := *t
		if own := here[who]; own != nil {
			rest = rest.minus(*own)
		}
		if rest.succeeded+rest.failed > 0 {
			n++
		}
		if rest.mostlyMachineFaults() {
			spoilt++
		}
	}
	return spoilt >= 2 && 2*spoilt > n
}

func (e *machineEvidence) addFailure(o *AttemptOutcome, counts bool) {
	e.outcomesHere.add(o, 1)
	if !counts {
		return
	}
	e.countedFailures++
	e.jobs[o.job()], e.owners[o.Owner], e.nodes[o.Node] = true, true, true
	if o.Reason != "" {
		e.lastReason = o.Reason
	}
}

// isEnough reports whether there is enough of it, whoever it is from. Of two jobs, all
// that is remembered has to count: while two long arrays run, nothing else may come to
// that machine for as long as they last.
func (e *machineEvidence) isEnough() bool {
	enough := e.countedFailures >= MinFailures && len(e.jobs) >= MinJobs ||
		len(e.jobs) == 2 && e.countedFailures >= 2*maxEventsPerJob
	return enough && e.countedFailures >= 4*e.outcomesHere.succeeded && !e.failuresAreCommon
}

// justifiesDrain reports whether a machine is to be drained for all: neither one owner
// nor, where there are several, one submit node brings that about alone.
func (e *machineEvidence) justifiesDrain(onTrial bool, nodes int) bool {
	enough := e.isEnough()
	if onTrial {
		enough = e.onTrial.failed >= TrialFailures && e.countedFailures >= TrialFailures &&
			e.onTrial.failed > e.onTrial.succeeded
	}
	return enough && len(e.owners) >= 2 && len(e.nodes) >= nodes
}

func (e *machineEvidence) text() string {
	text := fmt.Sprintf("%d attempts of %d jobs failed there within %v of their start", e.countedFailures, len(e.jobs),
		QuickRuntime)
	if n := e.outcomesElsewhere.succeeded + e.outcomesElsewhere.failed; n > 0 {
		text += fmt.Sprintf("; elsewhere %d of %d went well", e.outcomesElsewhere.succeeded, n)
	}
	if e.lastReason != "" {
		text += "; the last: " + strings.TrimSpace(e.lastReason)
	}
	return text
}
