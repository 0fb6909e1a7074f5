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

// maxEvalSteps bounds the evaluation of one expression, in nodes. Without it one user's
// Requirements could delay the whole pool.
const maxEvalSteps = 100_000

// negotiationCycle is the state of a plan while it is made.
type negotiationCycle struct {
	*Matcher
	*Snapshot
	env      classad.EvalEnv
	poolFree roost.Resources // free resources of the whole pool at this point of the cycle
	// by machine: its units with their node queues, where more tasks may wait
	unitQueues    []*gpu.FreeResources
	lastPlacement gpu.Placement    // result of the last FindPlacement
	placedLog     []machineVersion // where something was placed, in order
	requests      []*requestState  // in the order in which they are considered
	// limits that some request counts against, with their use at this point
	limits map[string]*ConcurrencyLimit
	poolTimeline
	ports   planPorts
	bandMix bandMix // nil: bands are not mixed

	submitters map[fairshare.Submitter]*submitterState
	// the result of the last look-up: the next request often has the same submitter
	lastSubmitterState *submitterState
	lastSubmitter      fairshare.Submitter
	groups             map[string]*groupQuota // by name; nil if there are no groups
	groupNames         []string               // sorted
	guests             map[string]*guestQuota // by group: the guests whose share is bounded
	result             Plan
	waitingUnits       int  // units that wait once everything has been placed
	proposalsFirst     bool // self-placements are being checked, before all other units
	softLimited        bool // some request of the band could not be placed because of a soft limit
	overSoftLimits     bool // requests beyond their soft limits are being placed now

	vacatesByMachine map[int]*pendingVacates // by machine: claims that leave or will leave
	// machines where more becomes free than is granted, in the order in which they were
	// found
	vacatingMachines []int
	vacatingListed   bool                // vacatingMachines is complete
	evictedCount     int                 // claims evicted in this plan
	evictionsByJob   map[claimJobKey]int // by job: evictions recently and in this plan

	preemptionCaches map[preemptionShape]*preemptionCache // results of victim searches, by the shape of the unit
	victimSearch     victimSearch
	advisingMoves    bool // claims that could move are looked for, and none is evicted
	lostWorkBuffer   []int64
	// by submitter and band: the lowest priority of its running tasks; nil until needed
	lowestPriority map[submitterInBand]int32
}

// requestState is what one request still needs during a cycle.
type requestState struct {
	*Request
	unitsLeft         int
	unitsAhead        int             // units of other requests that come before it
	higherAhead       int             // units of unitsAhead in higher bands
	ownAhead          int             // units of unitsAhead of the same submitter
	weightAhead       float64         // weight of unitsAhead together, in cores
	selfPlacements    []SelfPlacement // proposals of its schedd that are not checked yet
	grantableProposed int             // units of selfPlacements that may be granted
	heap              candidateHeap
	// Rank by machine: indexed by the machine's openIndex, or by its number if the
	// request wants no CPU; noMatch where the machine does not match
	ranks []float64
	// the same by machine number, used instead of ranks if only some machines were asked
	ranksSparse       map[int32]float64
	excludedOtherwise bool // something other than a machine's own state excluded it from a machine
	// by machine: how many expressions of Prefer hold, -1 where unknown; nil if none was
	// evaluated
	preferHits      []int8
	domains         spreadDomains    // where the job's units are; nil until first needed
	queueCandidates []queueCandidate // node queues where it may wait; nil until first needed
	submitter       *submitterState  // fair-share state of its submitter
	unitWeight      float64          // weight of one unit, in cores
	// no machine has room for one more unit. It stays true for the rest of the cycle,
	// because machines only fill up
	noFit          bool
	limits         []limitUse       // the limits that it counts against
	softLimits     []limitUse       // the soft limits that it counts against
	waitReason     string           // why it waits although there may be room; set only if Explain
	waitReasonKind ReasonKind       // the kind of waitReason
	seenPlaced     int              // length of placedLog that the heap has read
	heapMade       bool             // heap has been filled
	preemption     preemptionSearch // search for claims that it could preempt
	parts          []gangPart       // the parts of its gang; nil if it has none
	partOf         *requestState    // the gang of which it is a part; nil: none
	unplacedPartOf *requestState    // the part of its gang that found no room
	placementSet   *placementSet    // the set within which its gang is being placed
	reservedStart
}

// Plan runs one cycle. It does not change the snapshot.
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

// beginCycle prepares a cycle before anything is placed.
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
	p.siteScores().countPendingMix()
	return p
}

// with reports whether two requests take turns with each other.
func (w *requestState) with(other *requestState) bool {
	return w.Band == other.Band && w.Now == other.Now && w.Submitter.IsGuest() == other.Submitter.IsGuest()
}

// placeFirst places the requests that an operator ordered to run now, the oldest first,
// before others have their turns.
func (p *negotiationCycle) placeFirst(wants []*requestState) {
	for _, w := range slices.SortedFunc(slices.Values(wants), func(a, b *requestState) int {
		return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key))
	}) {
		p.placeTurn([]*requestState{w}, math.Inf(1))
	}
}

// compareTurns orders requests. Those to run now come first, then bands from high to low;
// in each band those of this pool come before those of guests. Then submitter, priority,
// age and key decide.
func compareTurns(a, b *requestState) int {
	switch {
	case a.Now != b.Now:
		if a.Now {
			return -1
		}
		return 1
	case a.Band != b.Band:
		return cmp.Compare(b.Band, a.Band)
	case a.Submitter.IsGuest() != b.Submitter.IsGuest(): // guests get what the others have left
		if b.Submitter.IsGuest() {
			return -1
		}
		return 1
	case a.Submitter != b.Submitter:
		return a.Submitter.Compare(b.Submitter)
	case a.Priority != b.Priority:
		return cmp.Compare(b.Priority, a.Priority)
	case a.Oldest != b.Oldest:
		return cmp.Compare(a.Oldest, b.Oldest)
	}
	return a.Key.Compare(b.Key)
}

// takeTurns lets the submitters of some requests of one band take turns. It ends when no
// submitter wants, or can get, anything more, or when they have got most cores together.
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
		claimants = append(claimants, w.submitter.waitingSubmitter(w.Submitter, w.Band))
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

// waitingSubmitter returns a submitter's state in a band as [fairshare.TurnQueue] needs
// it.
func (a *submitterState) waitingSubmitter(who fairshare.Submitter, band roost.PriorityBand) fairshare.WaitingSubmitter {
	return fairshare.WaitingSubmitter{Submitter: who, EffectivePriority: a.priorityIn(band), Usage: a.usage,
		Floor: a.Floor, Ceiling: a.Ceiling}
}

// placeTurn places units of one submitter's requests, in order, until their weight
// reaches the slice. It returns the weight placed, and the requests that may still get
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
				break // the rest follows when the proposals of all schedds have been checked
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

// epsilon is the rounding error allowed in sums of weights.
const epsilon = 1e-9

// maxUnitsPerTurn is more units than any request wants.
const maxUnitsPerTurn = 1 << 30

// unitsPerTurn returns how many units of a weight fill a slice, rounded up, at least one.
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

// placeOnMachine gives up to n units of w to a machine, and returns how many fit. The
// machine has room for at least one.
func (p *negotiationCycle) placeOnMachine(w *requestState, at, n int) int {
	if p.spreadAttrs(w) != nil || w.Class.Scatter || w.Class.takesMachineOnce() || p.Machines[at].Total.GPUs > 0 ||
		p.Score.spreadsUnits() || p.MixBands && w.Band.IsProd() {
		n = 1 // the next unit has to compare failure domains again, or may fit better elsewhere
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
	p.addToDomains(w, at, n)
	p.siteScores().countMix(w, at, n)
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
		GPUs: r.GPUs * n, IO: r.IO.Times(n),
	}
}

// listUnplaced lists the requests that could not be placed.
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
