package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// maxEvalSteps bounds the evaluation of one expression, in nodes: nobody's Requirements
// may hold up the pool.
const maxEvalSteps = 100_000

// negotiationCycle is a plan in the making.
type negotiationCycle struct {
	*Matcher
	*Snapshot
	env           classad.EvalEnv
	poolFree      roost.Resources              // of the pool, as yet
	unitQueues    []*gpu.FreeResources         // by machine: how its queues stand, where more may wait
	lastPlacement gpu.Placement                // the last one that was looked for
	placedLog     []machineVersion             // where something was placed, in order
	requests      []*requestState              // in the order in which they may be said to come
	limits        map[string]*ConcurrencyLimit // those that some want takes of, as yet
	poolTimeline

	submitters         map[fairshare.Submitter]*submitterState
	lastSubmitterState *submitterState // that was looked at last: the next is often of the same
	lastSubmitter      fairshare.Submitter
	groups             map[string]*groupQuota // nil if there are none
	groupNames         []string               // in order
	result             Plan
	waitingUnits       int  // units that wait, when all has been placed
	proposalsFirst     bool // proposals come first
	softLimited        bool // some of the band could not be placed for a soft limit
	overSoftLimits     bool // it is the turn of those that go beyond theirs

	vacatesByMachine map[int]*pendingVacates // by machine: where claims leave, or are about to
	// the machines where more falls free than is promised, in the order in which that was
	// found
	vacatingMachines []int
	vacatingListed   bool                // all such are there
	evictedCount     int                 // claims, in this plan
	evictionsByJob   map[claimJobKey]int // by job: how many of it, lately and in this plan

	preemptionCaches map[preemptionShape]*preemptionCache // what was found out about making room
	victimSearch     victimSearch
	lostWorkBuffer   []int64
}

// requestState is a request in the making of a plan.
type requestState struct {
	*Request
	unitsLeft         int
	unitsAhead        int             // units that wait in front of it
	higherAhead       int             // of those, the ones of higher bands
	ownAhead          int             // and of its own submitter
	weightAhead       float64         // what they weigh together, in cores
	selfPlacements    []SelfPlacement // by its schedd, and not looked at yet
	grantableProposed int             // units of those that may be granted
	heap              candidateHeap
	// of the machines that it was asked of, by their slot, or by their number if it wants
	// no CPU; noMatch where that is so
	ranks             []float64
	ranksSparse       map[int32]float64 // in place of ranks, where it has asked only some machines
	excludedOtherwise bool              // something else than a machine's state kept it from one
	// by machine: how many expressions of Prefer hold, -1 where that was not asked; nil
	// if none was
	preferHits      []int8
	domains         *spreadDomains   // where the job's units are; nil until that is needed
	queueCandidates []queueCandidate // where it may wait, nil until that was asked
	submitter       *submitterState  // its submitter's
	unitWeight      float64          // what a unit weighs, in cores
	// no machine has room for one more: none will have in this plan, for machines only
	// fill up
	noFit          bool
	limits         []limitUse       // the limits that it takes of
	softLimits     []limitUse       // and the soft ones
	waitReason     string           // what keeps it waiting though there may be room; only if it is to be explained
	waitReasonKind ReasonKind       // how that counts among the reasons
	seenPlaced     int              // how much of the log the heap knows
	heapMade       bool             // the heap was made
	preemption     preemptionSearch // whom it could displace
	parts          []gangPart       // of its gang; nil if it has none
	partOf         *requestState    // whose gang it is a part of; nil: of none
	unplacedPartOf *requestState    // the part of its gang that found no room
	placementSet   *placementSet    // its gang is being placed within
	reservedStart
}

// Plan decides. It changes nothing in the snapshot.
func (t *Matcher) Plan(s *Snapshot) Plan {
	p := t.beginCycle(s)
	for rest := p.requests; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].with(rest[0]) {
			n++
		}
		if rest[0].Now {
			p.placeFirst(rest[:n])
			rest = rest[n:]
			continue
		}
		if p.selfPlacements().initSelfPlacements(rest[:n]) {
			p.fairShares().placeBand(rest[:n])
			p.proposalsFirst = false
		}
		p.fairShares().placeBand(rest[:n])
		p.preemption().placeOverSoftLimits(rest[:n])
		rest = rest[n:]
	}
	p.nodeQueues().placeWaiting(p.requests)
	p.storeNoFit()
	p.listUnplaced()
	out := p.result
	t.scratch.recycle(p)
	return out
}

// beginCycle looks at a snapshot before anything is placed.
func (t *Matcher) beginCycle(s *Snapshot) *negotiationCycle {
	t.cycleNumber++
	p := &t.scratch.cycle
	p.Matcher, p.Snapshot, p.env, p.placedLog = t, s, classad.EvalEnv{Now: s.Now, Steps: maxEvalSteps}, t.scratch.log
	p.now, p.timelines = s.Now.Unix(), t.scratch.unavailable
	t.syncTable(p)
	p.poolFree = t.machineTable.poolFree
	p.fairShares().initSubmitters()
	p.preemption().initBudgets()
	p.backfill().applyReservations()
	p.requests = requestOrder(t.scratch.requestOrder, len(s.Requests))
	for _, r := range s.Requests {
		if r.Wanted > 0 {
			w := t.scratch.requestStates.newItem()
			w.Request, w.unitsLeft, w.submitter, w.unitWeight = r, r.Wanted, p.fairShares().submitterState(r.Submitter),
				fairshare.CoresWorth(r.Class.Resources, p.poolTotal)
			p.bindLimits(w)
			p.backfill().bindReservation(w)
			if w.Gang > 1 {
				p.gangs().splitGang(w)
			}
			p.requests = append(p.requests, w)
		}
	}
	p.fairShares().sumGroupUsage()
	slices.SortFunc(p.requests, compareTurns)
	p.makeMix()
	return p
}

// with reports whether two wants take turns with each other.
func (w *requestState) with(other *requestState) bool {
	return w.Band == other.Band && w.Now == other.Now
}

// placeFirst gives what is to run now all that it wants, before others have their turns,
// the first come first.
func (p *negotiationCycle) placeFirst(wants []*requestState) {
	for _, w := range slices.SortedFunc(slices.Values(wants), func(a, b *requestState) int {
		return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key))
	}) {
		p.placeTurn([]*requestState{w}, math.Inf(1))
	}
}

// compareTurns orders what is to run now before the rest, then by band from high to low,
// then by submitter, priority, age and name.
func compareTurns(a, b *requestState) int {
	switch {
	case a.Now != b.Now:
		if a.Now {
			return -1
		}
		return 1
	case a.Band != b.Band:
		return cmp.Compare(b.Band, a.Band)
	case a.Submitter != b.Submitter:
		return a.Submitter.Compare(b.Submitter)
	case a.Priority != b.Priority:
		return cmp.Compare(b.Priority, a.Priority)
	case a.Oldest != b.Oldest:
		return cmp.Compare(a.Oldest, b.Oldest)
	}
	return a.Key.Compare(b.Key)
}

// takeTurns lets the submitters of some wants of one band take turns until nobody wants,
// or can get, anything more. Together they may have so many cores.
func (p *negotiationCycle) takeTurns(wants []*requestState, most float64) {
	queues, claimants := p.scratch.queues[:0], p.scratch.claims[:0]
	all := requestOrder(p.scratch.turnRequests, len(wants))
	for _, w := range wants {
		if w.unitsLeft == 0 || w.noFit {
			continue
		}
		all = append(all, w)
		if n := len(queues); n > 0 && queues[n-1][0].Submitter == w.Submitter {
			queues[n-1] = all[len(all)-len(queues[n-1])-1:]
			continue
		}
		queues = append(queues, all[len(all)-1:])
		claimants = append(claimants, w.submitter.waitingSubmitter(w.Submitter))
	}
	p.scratch.turnRequests, p.scratch.queues, p.scratch.claims = all, queues, claimants
	turns := &p.scratch.fairShareQueue
	turns.Restart(claimants)
	for {
		i, slice, ok := turns.Next(min(fairshare.CoresWorth(p.poolFree, p.poolTotal), most))
		if !ok {
			return
		}
		took := 0.0
		took, queues[i] = p.placeTurn(queues[i], slice)
		turns.AddTaken(i, took)
		most -= took
		if len(queues[i]) == 0 {
			turns.RemoveClaimant(i)
		}
	}
}

// waitingSubmitter is a submitter as turns see it.
func (a *submitterState) waitingSubmitter(who fairshare.Submitter) fairshare.WaitingSubmitter {
	return fairshare.WaitingSubmitter{Submitter: who, EffectivePriority: a.EffectivePriority, Usage: a.usage,
		Floor: a.Floor, Ceiling: a.Ceiling}
}

// placeTurn places units of one submitter's requests in their order until they weigh as
// much as the slice, and returns what they weighed and which requests may still get
// something in a later turn. At least one unit is placed if any can be.
func (p *negotiationCycle) placeTurn(queue []*requestState, slice float64) (took float64, rest []*requestState) {
	for len(queue) > 0 {
		w := queue[0]
		for w.unitsLeft > 0 {
			if took > 0 && took >= slice-epsilon {
				return took, queue
			}
			if w.Gang > 1 {
				if !p.gangs().placeOneGang(w) {
					break
				}
				took += w.unitWeight * float64(w.Gang)
				continue
			}
			n := p.unitsWithinLimits(w, min(w.unitsLeft, unitsPerTurn(slice-took, w.unitWeight)))
			if n == 0 {
				break
			}
			if at, units, ok := p.selfPlacements().nextSelfPlacement(w, n); ok {
				n = p.placeOnMachine(w, at, units)
				w.consumeSelfPlacement(n)
			} else if n = p.selfPlacements().withinGrantable(w, n); n == 0 {
				break // the rest when everybody's proposals have been looked at
			} else if at, ok := p.bestMachine(w); ok {
				n = p.placeOnMachine(w, at, n)
				w.grantableProposed -= n
			} else if p.preemption().preemptForUnit(w) {
				n = 1
				w.grantableProposed--
			} else {
				w.noFit, w.waitReason = true, ""
				p.backfill().reserveForUnplaced(w)
				break
			}
			took += w.unitWeight * float64(n)
		}
		p.releaseMemory(w)
		queue = queue[1:]
	}
	return took, nil
}

// epsilon is what sums of weights may be off by.
const epsilon = 1e-9

// maxUnitsPerTurn is more than anybody wants.
const maxUnitsPerTurn = 1 << 30

// unitsPerTurn is how many units of that weight make up a slice, rounded up, one at
// least.
func unitsPerTurn(slice, unit float64) int {
	if unit <= 0 || slice/unit >= maxUnitsPerTurn {
		return maxUnitsPerTurn
	}
	n := int(slice / unit)
	if float64(n)*unit < slice-epsilon {
		n++
	}
	return max(n, 1)
}

// placeOnMachine gives up to n units of w to a machine that has room for one, and returns
// how many fit.
func (p *negotiationCycle) placeOnMachine(w *requestState, at, n int) int {
	if w.Class.Spread != "" || w.Class.Scatter || w.Class.Exclusive || p.Machines[at].Total.GPUs > 0 ||
		p.Score.spreadsUnits() {
		n = 1 // the next one has to look for the emptiest domain again, or may sit better elsewhere
	}
	n = p.backfill().fitsBesideReservations(w, at, n)
	switch {
	case w.Class.Exclusive:
		p.takeExclusive(at)
	case p.unitsFreeAt(at) != nil:
		n = p.placeOnUnits(w.Class, at, n)
	default:
		n = min(n, w.Class.Resources.TimesIn(p.roomBySums(w.Class, at)))
		p.subtractSums(at, multiplied(w.Class.Resources, n), w.Class.AppClass)
	}
	p.poolFree = p.poolFree.Sub(multiplied(p.unitUsage(w.Class, at), n))
	p.countPlaced(w, n)
	p.backfill().consumeReservation(w, at, n)
	w.unitsLeft -= n
	if w.domains != nil {
		w.domains.units[p.failureDomain(w, at)] += int32(n)
	}
	p.markChanged(at)
	p.placedLog = append(p.placedLog, machineVersion{int32(at), p.versions[at]})
	m := p.Machines[at]
	if last := len(p.result.Grants) - 1; last >= 0 && p.result.Grants[last].Request == w.Request &&
		p.result.Grants[last].Machine == m && p.result.Grants[last].Gang == w.gang &&
		p.result.Grants[last].Victims == nil {
		p.result.Grants[last].Units += n
		return n
	}
	p.result.Grants = append(p.result.Grants, Grant{Request: w.Request, Machine: m, Units: n, Gang: w.gang})
	return n
}

func multiplied(r roost.Resources, n int) roost.Resources {
	return roost.Resources{
		CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * roost.Bytes(n), Disk: r.Disk * roost.Bytes(n),
		GPUs: r.GPUs * n,
	}
}

// listUnplaced lists what could not be placed.
func (p *negotiationCycle) listUnplaced() {
	for i := range p.result.BackfillReservations {
		h := &p.result.BackfillReservations[i]
		h.FreeBeside = p.timelines[int(h.Machine.number)].FreeAt(h.From)
	}
	waiting, explain := 0, false
	for _, w := range p.requests {
		if w.unitsLeft > 0 {
			waiting, explain = waiting+1, explain || w.Explain
		}
	}
	if explain {
		p.explainer().countUnitsAhead()
	}
	p.result.Unplaced = slices.Grow(p.result.Unplaced, waiting)
	for _, w := range p.requests {
		if w.unitsLeft == 0 {
			continue
		}
		u := UnplacedRequest{Request: w.Request, Missing: w.unitsLeft, NoRoom: w.noFit,
			Awaits: w.preemption.awaitingVictims > 0}
		if w.Explain {
			u.Explanation = p.explainer().explainRequest(w.unplacedPart())
		}
		p.result.Unplaced = append(p.result.Unplaced, u)
	}
}
