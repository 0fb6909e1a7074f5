package blackhole

import (
	"fmt"
	"strings"
	"time"
)

// machineEvidence is the evidence in the stored outcomes of one machine, of all
// submitters or of some.
type machineEvidence struct {
	outcomesHere      outcomeCounts // all outcomes there
	outcomesElsewhere outcomeCounts // outcomes of all other machines
	onTrial           outcomeCounts // since its trial began
	countedFailures   int           // failures that count against it
	jobs              map[nodeJob]bool
	owners            map[string]bool
	nodes             map[string]bool // submit nodes of those failures
	// most submitters have machine faults elsewhere, too: the pool is at fault, or
	// something shared
	failuresAreCommon bool
	lastReason        string // reason of the last failure

	// the evidence by submitter, and by submit node; nil within these, and if there is
	// too little
	bySubmitter map[NodeSubmitter]*machineEvidence
}

func newEvidence() *machineEvidence {
	return &machineEvidence{jobs: map[nodeJob]bool{}, owners: map[string]bool{}, nodes: map[string]bool{}}
}

// collectEvidence collects the evidence against a machine. It consists of failures within
// [QuickRuntime] that the machine reports as its own fault, unless other machines report
// so to the same submitter, and of failures of jobs that succeed elsewhere.
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

// failuresAreCommon reports whether machine faults are common elsewhere. That is so if
// most submitters with outcomes on other machines, and more than one, have many there.
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

// isEnough reports whether the evidence is enough, whatever its sources. Of two jobs,
// everything stored must count: while two long arrays run, nothing else may come to the
// machine.
func (e *machineEvidence) isEnough() bool {
	enough := e.countedFailures >= MinFailures && len(e.jobs) >= MinJobs ||
		len(e.jobs) == 2 && e.countedFailures >= 2*maxEventsPerJob
	return enough && e.countedFailures >= 4*e.outcomesHere.succeeded && !e.failuresAreCommon
}

// justifiesDrain reports whether a machine must be drained for all. Neither one owner
// nor, if there are several, one submit node can cause that alone.
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
