package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// maxSteps bounds the evaluation of one expression, in nodes: nobody's Requirements may hold up the pool.
const maxSteps = 100_000

// plan is a plan in the making.
type plan struct {
	*Matcher
	*Snapshot
	env    classad.Env
	spare  roost.Resources   // of the pool, as yet
	queues []*gpu.Free       // by machine: how its queues stand, where more may wait
	spot   gpu.Placement     // the last one that was looked for
	log    []placed          // where something was placed, in order
	wants  []*want           // in the order in which they may be said to come
	limits map[string]*Limit // those that some want takes of, as yet
	course

	accounts   map[share.Submitter]*account
	last       *account // that was looked at last: the next is often of the same
	lastWho    share.Submitter
	groups     map[string]*group // nil if there are none
	groupNames []string          // in order
	out        Plan
	waiting    int  // units that wait, when all has been placed
	proposing  bool // proposals come first
	curbed     bool // some of the band could not be placed for a soft limit
	beyond     bool // it is the turn of those that go beyond theirs

	scenes  map[int]*scene // by machine: where claims leave, or are about to
	stages  []int          // the machines where more falls free than is promised, in the order in which that was found
	staged  bool           // all such are there
	evicted int            // claims, in this plan
	hurt    map[jobKey]int // by job: how many of it, lately and in this plan

	terrains map[shape]*terrain // what was found out about making room
	search   search
	lost     []int64
}

// want is a request in the making of a plan.
type want struct {
	*Request
	left        int
	ahead       int        // units that wait in front of it
	higher      int        // of those, the ones of higher bands
	own         int        // and of its own submitter
	weightAhead float64    // what they weigh together, in cores
	proposed    []Proposal // by its schedd, and not looked at yet
	portion     int        // units of those that may be granted
	heap        candidates
	ranks       []float64         // of the machines that it was asked of, by their slot, or by their number if it wants no CPU; noMatch where that is so
	few         map[int32]float64 // in place of ranks, where it has asked only some machines
	keptOff     bool              // something else than a machine's state kept it from one
	liked       []int8            // by machine: how many expressions of Prefer hold, -1 where that was not asked; nil if none was
	domains     *domains          // where the job's units are; nil until that is needed
	waiters     []waiter          // where it may wait, nil until that was asked
	account     *account          // its submitter's
	unit        float64           // what a unit weighs, in cores
	barren      bool              // no machine has room for one more: none will have in this plan, for machines only fill up
	taps        []tap             // the limits that it takes of
	soft        []tap             // and the soft ones
	held        string            // what keeps it waiting though there may be room; only if it is to be explained
	heldBy      Kind              // how that counts among the reasons
	seen        int               // how much of the log the heap knows
	opened      bool              // the heap was made
	hunt        hunt              // whom it could displace
	cast        []section         // of its gang; nil if it has none
	of          *want             // whose gang it is a part of; nil: of none
	short       *want             // the part of its gang that found no room
	fence       *fence            // its gang is being placed within
	prospect
}

// Plan decides. It changes nothing in the snapshot.
func (t *Matcher) Plan(s *Snapshot) Plan {
	p := t.start(s)
	for rest := p.wants; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].with(rest[0]) {
			n++
		}
		if rest[0].Now {
			p.placeFirst(rest[:n])
			rest = rest[n:]
			continue
		}
		if p.openProposals(rest[:n]) {
			p.placeBand(rest[:n])
			p.proposing = false
		}
		p.placeBand(rest[:n])
		p.placeBeyond(rest[:n])
		rest = rest[n:]
	}
	p.placeWaiting(p.wants)
	p.remember()
	p.report()
	out := p.out
	t.scratch.keep(p)
	return out
}

// start looks at a snapshot before anything is placed.
func (t *Matcher) start(s *Snapshot) *plan {
	t.cycle++
	p := &t.scratch.plan
	p.Matcher, p.Snapshot, p.env, p.log = t, s, classad.Env{Now: s.Now, Steps: maxSteps}, t.scratch.log
	p.now, p.futures = s.Now.Unix(), t.scratch.kept
	t.sync(p)
	p.spare = t.ground.spare
	p.openAccounts()
	p.openBudgets()
	p.reserve()
	p.wants = byRequest(t.scratch.order, len(s.Requests))
	for _, r := range s.Requests {
		if r.Wanted > 0 {
			w := t.scratch.wants.next()
			w.Request, w.left, w.account, w.unit = r, r.Wanted, p.account(r.Submitter), share.Weight(r.Class.Resources, p.total)
			p.tapLimits(w)
			p.enter(w)
			if w.Gang > 1 {
				p.openCast(w)
			}
			p.wants = append(p.wants, w)
		}
	}
	p.sumGroups()
	slices.SortFunc(p.wants, byTurn)
	p.judgeGPUs()
	return p
}

// with reports whether two wants take turns with each other.
func (w *want) with(other *want) bool { return w.Band == other.Band && w.Now == other.Now }

// placeFirst gives what is to run now all that it wants, before others have their turns, the first come first.
func (p *plan) placeFirst(wants []*want) {
	for _, w := range slices.SortedFunc(slices.Values(wants), func(a, b *want) int { return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key)) }) {
		p.turn([]*want{w}, math.Inf(1))
	}
}

// byTurn orders what is to run now before the rest, then by band from high to low, then by submitter, priority, age and name.
func byTurn(a, b *want) int {
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

// takeTurns lets the submitters of some wants of one band take turns until nobody wants, or can get, anything more. Together they may have so many
// cores.
func (p *plan) takeTurns(wants []*want, most float64) {
	queues, claimants := p.scratch.queues[:0], p.scratch.claims[:0]
	all := byRequest(p.scratch.turns, len(wants))
	for _, w := range wants {
		if w.left == 0 || w.barren {
			continue
		}
		all = append(all, w)
		if n := len(queues); n > 0 && queues[n-1][0].Submitter == w.Submitter {
			queues[n-1] = all[len(all)-len(queues[n-1])-1:]
			continue
		}
		queues = append(queues, all[len(all)-1:])
		claimants = append(claimants, w.account.claimant(w.Submitter))
	}
	p.scratch.turns, p.scratch.queues, p.scratch.claims = all, queues, claimants
	turns := &p.scratch.pie
	turns.Begin(claimants)
	for {
		i, slice, ok := turns.Next(min(share.Weight(p.spare, p.total), most))
		if !ok {
			return
		}
		took := 0.0
		took, queues[i] = p.turn(queues[i], slice)
		turns.Took(i, took)
		most -= took
		if len(queues[i]) == 0 {
			turns.Leave(i)
		}
	}
}

// claimant is a submitter as turns see it.
func (a *account) claimant(who share.Submitter) share.Claimant {
	return share.Claimant{Submitter: who, Effective: a.Effective, Held: a.held, Floor: a.Floor, Ceiling: a.Ceiling}
}

// turn places units of one submitter's requests in their order until they weigh as much as the slice, and returns what they weighed and which
// requests may still get something in a later turn. At least one unit is placed if any can be.
func (p *plan) turn(queue []*want, slice float64) (took float64, rest []*want) {
	for len(queue) > 0 {
		w := queue[0]
		for w.left > 0 {
			if took > 0 && took >= slice-dust {
				return took, queue
			}
			if w.Gang > 1 {
				if !p.gang(w) {
					break
				}
				took += w.unit * float64(w.Gang)
				continue
			}
			n := p.allowed(w, min(w.left, unitsIn(slice-took, w.unit)))
			if n == 0 {
				break
			}
			if at, units, ok := p.proposed(w, n); ok {
				n = p.place(w, at, units)
				w.granted(n)
			} else if n = p.withinPortion(w, n); n == 0 {
				break // the rest when everybody's proposals have been looked at
			} else if at, ok := p.best(w); ok {
				n = p.place(w, at, n)
				w.portion -= n
			} else if p.preempt(w) {
				n = 1
				w.portion--
			} else {
				w.barren, w.held = true, ""
				p.blocked(w)
				break
			}
			took += w.unit * float64(n)
		}
		p.release(w)
		queue = queue[1:]
	}
	return took, nil
}

// dust is what sums of weights may be off by.
const dust = 1e-9

// maxUnits is more than anybody wants.
const maxUnits = 1 << 30

// unitsIn is how many units of that weight make up a slice, rounded up, one at least.
func unitsIn(slice, unit float64) int {
	if unit <= 0 || slice/unit >= maxUnits {
		return maxUnits
	}
	n := int(slice / unit)
	if float64(n)*unit < slice-dust {
		n++
	}
	return max(n, 1)
}

// place gives up to n units of w to a machine that has room for one, and returns how many fit.
func (p *plan) place(w *want, at, n int) int {
	if w.Class.Spread != "" || w.Class.Apart || w.Class.Alone || p.Machines[at].Total.GPUs > 0 || p.Score.spreads() {
		n = 1 // the next one has to look for the emptiest domain again, or may sit better elsewhere
	}
	n = p.beside(w, at, n)
	switch {
	case w.Class.Alone:
		p.takeWhole(at)
	case p.splitAt(at) != nil:
		n = p.putUnits(w.Class, at, n)
	default:
		n = min(n, w.Class.Resources.Times(p.room(w.Class, at)))
		p.subtract(at, times(w.Class.Resources, n), w.Class.App)
	}
	p.spare = p.spare.Sub(times(p.takes(w.Class, at), n))
	p.use(w, n)
	p.took(w, at, n)
	w.left -= n
	if w.domains != nil {
		w.domains.units[p.domain(w, at)] += int32(n)
	}
	p.touch(at)
	p.log = append(p.log, placed{int32(at), p.versions[at]})
	m := p.Machines[at]
	if last := len(p.out.Grants) - 1; last >= 0 && p.out.Grants[last].Request == w.Request && p.out.Grants[last].Machine == m && p.out.Grants[last].Gang == w.gang && p.out.Grants[last].Victims == nil {
		p.out.Grants[last].Units += n
		return n
	}
	p.out.Grants = append(p.out.Grants, Grant{Request: w.Request, Machine: m, Units: n, Gang: w.gang})
	return n
}

func times(r roost.Resources, n int) roost.Resources {
	return roost.Resources{
		CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * roost.Bytes(n), Disk: r.Disk * roost.Bytes(n), GPUs: r.GPUs * n,
	}
}

// report lists what could not be placed.
func (p *plan) report() {
	for i := range p.out.Heads {
		h := &p.out.Heads[i]
		h.Beside = p.futures[int(h.Machine.at)].At(h.From)
	}
	waiting, explain := 0, false
	for _, w := range p.wants {
		if w.left > 0 {
			waiting, explain = waiting+1, explain || w.Explain
		}
	}
	if explain {
		p.countAhead()
	}
	p.out.Unplaced = slices.Grow(p.out.Unplaced, waiting)
	for _, w := range p.wants {
		if w.left == 0 {
			continue
		}
		u := Unplaced{Request: w.Request, Missing: w.left, NoRoom: w.barren, Awaits: w.hunt.awaits > 0}
		if w.Explain {
			u.Explanation = p.explain(w.lacking())
		}
		p.out.Unplaced = append(p.out.Unplaced, u)
	}
}
