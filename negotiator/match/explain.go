package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// WaitExplanation says why a request waits. Each machine is counted once, for the first
// reason that applies: drained, not meeting the Requirements, refusing by its own policy,
// too small even when empty, having refused recently, reserved, busy, held for others.
type WaitExplanation struct {
	Machines     int
	Reasons      []WaitReason // most machines first
	Summary      string       // one sentence
	Brief        string       // the same in a few words, for a list
	Advice       []string     // the smallest changes that would help, best first
	UnitsAhead   int          // units that wait in front of it by fair share now: see explain_queue_position.go
	HigherAhead  int          // units of UnitsAhead in higher bands
	OwnAhead     int          // units of UnitsAhead of its own submitter
	UnitsWaiting int          // units that wait in all
	// the conditions of request and machines, each counted alone; none if all machines
	// match
	Conditions []RequirementCount
	Conflicts  []string // conditions that no machine meets together
	Nearest    []string // the machines that miss the fewest conditions
	StartEstimate
}

// WaitReason is a reason with the number of machines that it excludes.
type WaitReason struct {
	Kind     ReasonKind
	Text     string
	Machines int
}

// ReasonKind is what kind of reason excludes a machine.
type ReasonKind uint8

// The kinds. From TooSmall on, the machine matches the request.
const (
	SeveralReasons ReasonKind = iota // several kinds
	NoMatch                          // the machine does not meet the request's Requirements
	OwnPolicy                        // the machine's own policy refuses the request
	OwnerActive                      // the same, because its owner uses it
	Drained
	TooSmall        // too small even when it is empty
	RecentlyRefused // it refused a claim a moment ago
	AvoidedPair     // the request's tasks keep failing there
	Reserved
	Busy
	ReservedForEarlier // it has room, which is reserved for a request that comes before
	// it has room, but the request has reached a limit: licences, running tasks, a quota
	OverLimit
	PartOnly // it has room for a part of the request, which starts as a whole or not at all
	PortTaken
)

var reasonKindNames = [...]string{"other", "no match", "policy", "owner active", "drained", "too small", "refused",
	"kept apart", "reserved", "busy", "held", "limit", "gang",
	"port"}

// String returns a word for programs.
func (k ReasonKind) String() string { return reasonKindNames[k] }

// reasonKey identifies one reason.
type reasonKey struct {
	kind ReasonKind
	text string
}

// Bounds on what an explanation contains.
const (
	maxReasons = 12
	maxText    = 200
	maxAdvice  = 3
)

// resourceDimension is one kind of resource.
type resourceDimension int

const (
	cpus resourceDimension = iota
	memory
	gpus
	gpuMemory // of each GPU, where shares are asked for
	disk
	diskIO
	network
	dimensions
)

var dimensionNames = [dimensions]string{"cpus", "memory", "gpus", "gpu_memory", "disk", "disk_io",
	"network"}

func (d resourceDimension) amountOf(r roost.Resources) int64 { return resourceAmounts(r)[d] }

func resourceAmounts(r roost.Resources) [dimensions]int64 {
	return [dimensions]int64{int64(r.CPU), int64(r.Memory), int64(r.GPUs), int64(r.GPUMemory), int64(r.Disk),
		int64(r.IO.Disk), int64(r.IO.Network)}
}

// amountText formats an amount of the dimension, with its name if named.
func (d resourceDimension) amountText(n int64, named bool) string {
	text := fmt.Sprint(n)
	switch d {
	case cpus:
		text = roost.MilliCPU(n).String()
	case memory, disk, gpuMemory:
		text = roost.Bytes(n).String()
	case diskIO, network:
		text = roost.ByteRate(n).String()
	}
	if !named {
		return text
	}
	name := dimensionNames[d]
	if text == "1" {
		name = strings.TrimSuffix(name, "s")
	}
	return text + " " + name
}

// waitExplainer counts machines by reason.
type waitExplainer struct {
	request  *requestState
	machines int
	match    *classad.Explanation
	// by conjunct: machines that fail it, in the request's Requirements or in their own
	// policy
	conjunct        map[int]int
	onlyConjunct    map[int]int       // by conjunct: machines that fail only this
	ownerActive     int               // machines that refuse by their own policy because their owners use them
	otherReasons    map[reasonKey]int // all other reasons
	reasonCounts    [len(reasonKindNames)]int
	tooSmall        [dimensions]closestMachine
	busy            [dimensions]closestMachine
	busyInOne       [dimensions]closestMachine // machines that are busy in this dimension alone
	tooSmallInOne   [dimensions]closestMachine // machines that are too small in this dimension alone
	capable         int                        // machines that could run it if they were empty
	capableMachines []int                      // numbers of the capable machines
	reservedNow     int                        // machines with room now that something else excludes
	shortOfTwoNow   twoShortages               // the machine that lacks the least of two resources now
	// the machine that lacks the least of two resources even when empty
	shortOfTwoEver twoShortages
	longestNow     timeline.UnixSeconds // seconds: with a run time of at most this it would start now
	gangUnitsNow   int                  // units of a gang that have room now
}

// closestMachine counts machines and remembers the one that comes closest.
type closestMachine struct {
	machines int
	largest  int64  // most that one of them has, or has free
	total    int64  // what the machine with the most has in all
	allEqual bool   // all machines have the same
	machine  string // name of the machine with the most
}

func (e *closestMachine) addMachine(have, of int64, where string) {
	if e.machines == 0 {
		e.largest, e.total, e.allEqual, e.machine = have, of, true, where
	} else {
		e.allEqual = e.allEqual && e.largest == have && e.total == of
		if have > e.largest {
			e.largest, e.total, e.machine = have, of, where
		}
	}
	e.machines++
}

func (p startExplainer) explainRequest(w *requestState) *WaitExplanation {
	t := waitExplainer{request: w, conjunct: map[int]int{}, onlyConjunct: map[int]int{},
		otherReasons: map[reasonKey]int{}, match: p.compiledQuery(w.Class).Explain(&p.env)}
	for at := range p.Machines {
		t.reasonCounts[t.countMachine(p.negotiationCycle, at)]++
	}
	e := &WaitExplanation{
		Machines: t.machines, Reasons: t.listReasons(), UnitsAhead: w.unitsAhead, HigherAhead: w.higherAhead,
		OwnAhead: w.ownAhead, UnitsWaiting: p.waitingUnits,
		Advice: t.suggestions(p.negotiationCycle), Conditions: t.conditions(),
	}
	if t.match.Matched == 0 {
		e.Conflicts, e.Nearest = t.conflicts(), t.nearest(p.negotiationCycle)
	}
	e.StartEstimate = p.startEstimate(&t)
	e.Summary = t.summary(e.Reasons) + t.takenPortsText() +
		p.preemption().noPreemptionReason(w) + p.backfill().outlookText(w)
	if why := w.infeasibleReason(t.machines, t.capable); why != "" {
		e.Summary = why + ": " + e.Summary
	}
	e.Brief = t.briefText(p.negotiationCycle, e)
	return e
}

// addReason counts a machine for a reason.
func (t *waitExplainer) addReason(k ReasonKind, text string) ReasonKind {
	t.otherReasons[reasonKey{k, text}]++
	return k
}

// countMachine counts one machine for the first reason that applies.
func (t *waitExplainer) countMachine(p *negotiationCycle, at int) ReasonKind {
	m, c := p.Machines[at], t.request.Class
	t.machines++
	if m.drained {
		return t.addReason(Drained, "drained")
	}
	closed, by := p.backfill().fullyReservedFor(t.request, at)
	if closed == Drained {
		return t.addReason(closed, by)
	}
	if !p.backfill().inReservation(t.request, at) {
		return t.addReason(Reserved, "not in reservation "+t.request.Reservation)
	}
	if failing, conjunct := t.match.Failing(m.row); failing > 0 {
		return t.countMismatch(m, failing, conjunct, func() bool {
			s := p.explainer().shortageOf(c, at, true)
			return s.isShort()
		})
	}
	if small := p.explainer().shortageOf(c, at, true); small.reason != "" {
		return t.addReason(TooSmall, "too small: "+small.reason)
	} else if small.dimensions > 0 {
		d := small.first
		t.tooSmall[d].addMachine(small.have[d], small.have[d], m.Name)
		if small.dimensions == 1 && p.explainer().fitsWithLess(c, at, d, small.have[d], true) {
			t.tooSmallInOne[d].addMachine(small.have[d], small.have[d], m.Name)
		}
		t.shortOfTwoEver.addMachine(p, c, at, &small)
		return TooSmall
	}
	t.capable++
	t.capableMachines = append(t.capableMachines, at)
	if port := p.portConflict(c, at); port != 0 {
		return t.addReason(PortTaken, p.Machines[at].portReason(port))
	}
	if why, avoid := t.request.Avoid[m.Name]; avoid && strings.HasPrefix(why, AvoidPairPrefix) {
		return t.addReason(AvoidedPair, why)
	} else if avoid {
		return t.addReason(RecentlyRefused, "refused the claim: "+why)
	}
	if closed == Reserved {
		return t.addReason(closed, by)
	}
	return t.countBusy(p, at)
}

// AvoidPairPrefix begins the reason to avoid a machine on which the request's tasks keep
// failing.
const AvoidPairPrefix = "kept apart: "

// countMismatch counts a machine that does not match.
func (t *waitExplainer) countMismatch(m *Machine, failing, conjunct int, small func() bool) ReasonKind {
	if failing == 1 && !small() {
		t.onlyConjunct[conjunct]++
	}
	switch {
	case t.match.Conjuncts[conjunct].Side == classad.Left:
		t.conjunct[conjunct]++
		return NoMatch
	case m.paused:
		t.otherReasons[reasonKey{OwnerActive, "paused by its owner"}]++
		return OwnerActive
	case m.ownerActive:
		t.ownerActive++
		return OwnerActive
	}
	t.conjunct[conjunct]++
	return OwnPolicy
}

// countBusy counts a machine that could run the request if it were empty.
func (t *waitExplainer) countBusy(p *negotiationCycle, at int) ReasonKind {
	m, c := p.Machines[at], t.request.Class
	busy := p.explainer().shortageOf(c, at, false)
	switch d := busy.first; {
	case busy.reason != "":
		return t.addReason(Busy, "busy: "+busy.reason)
	case busy.dimensions == 0 && p.timelines[at] != nil && p.backfill().fitsBesideReservations(t.request, at, 1) == 0:
		t.longestNow = max(t.longestNow, p.explainer().longestRuntimeNow(t.request, at))
		return t.addReason(p.backfill().reservedFor(t.request, at))
	// in a complete plan such a machine exists only where something else excludes the
	// request
	case busy.dimensions == 0:
		t.reservedNow++
		t.gangUnitsNow += p.explainer().unitsFittingNow(t.request, at)
		if t.request.waitReason == "" {
			return t.addReason(ReservedForEarlier, "room is left for others")
		}
		return t.addReason(t.request.waitReasonKind, t.request.waitReason)
	default:
		t.busy[d].addMachine(busy.have[d], busy.total[d], m.Name)
		if busy.dimensions == 1 && p.explainer().fitsWithLess(c, at, d, busy.have[d], false) {
			t.busyInOne[d].addMachine(busy.have[d], busy.total[d], m.Name)
		}
		t.shortOfTwoNow.addMachine(p, c, at, &busy)
	}
	return Busy
}

func (t *waitExplainer) listReasons() []WaitReason {
	var all []WaitReason
	add := func(k ReasonKind, n int, format string, args ...any) {
		if n > 0 {
			all = append(all, WaitReason{k, clipText(fmt.Sprintf(format, args...)), n})
		}
	}
	for c, n := range t.conjunct {
		if t.match.Conjuncts[c].Side == classad.Right {
			add(OwnPolicy, n, "machine's own policy refuses: %s", t.conjunctText(c))
			continue
		}
		add(NoMatch, n, "does not meet Requirements: %s", t.conjunctText(c))
	}
	add(OwnerActive, t.ownerActive, "its owner uses it")
	for one, n := range t.otherReasons {
		add(one.kind, n, "%s", one.text)
	}
	for d := range dimensions {
		small, busy := &t.tooSmall[d], &t.busy[d]
		switch {
		case d == gpuMemory:
			add(TooSmall, small.machines, "%s", t.addGPUMemoryReason(small, "", "the largest has %v, on %s",
				"that many have at most %v, on %s"))
			add(Busy, busy.machines, "%s", t.addGPUMemoryReason(busy, " free", "the largest free share is %v on %s",
				"that many have at most %v free, on %s"))
			continue
		case busy.allEqual:
			add(Busy, busy.machines, "busy: %s of %s free", d.amountText(busy.largest, false),
				d.amountText(busy.total, true))
		default:
			add(Busy, busy.machines, "busy: at most %s free", d.amountText(busy.largest, true))
		}
		add(TooSmall, small.machines, "too small: has %s at most", d.amountText(small.largest, true))
	}
	slices.SortFunc(all, func(a, b WaitReason) int {
		return cmp.Or(cmp.Compare(b.Machines, a.Machines), strings.Compare(a.Text, b.Text))
	})
	if len(all) > maxReasons {
		rest := WaitReason{Text: "other reasons"}
		for _, r := range all[maxReasons-1:] {
			rest.Machines += r.Machines
		}
		all = append(all[:maxReasons-1], rest)
	}
	return all
}

// addGPUMemoryReason says that no GPUs have the memory that is asked for.
func (t *waitExplainer) addGPUMemoryReason(e *closestMachine, free, one, many string) string {
	r, text := t.request.Class.Resources, one
	what := "GPU"
	if r.GPUs > 1 {
		what, text = fmt.Sprintf("%d GPUs", r.GPUs), many
	}
	return fmt.Sprintf("no %s with %v%s (%s)", what, r.GPUMemory, free,
		fmt.Sprintf(text, roost.Bytes(e.largest), e.machine))
}

func (t *waitExplainer) conjunctText(c int) string { return t.match.Conjuncts[c].Expr.String() }

func clipText(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
