package match

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// naiveMatcher plans by the rules in the package's comment and nothing else: no tables,
// no heaps. Every unit looks at every machine.
type naiveMatcher struct {
	*Snapshot
	free           map[*Machine]*naiveFree
	total          roost.Resources
	poolFree       roost.Resources
	left           map[*Request]int
	noFit          map[*Request]bool
	limits         naiveLimits
	mix            *naiveMix
	usage          map[fairshare.Submitter]float64
	allowed        map[string]float64 // by group: cores it may use in this round
	overSoftLimits bool               // soft limits do not count now
	softLimited    bool               // a soft limit has excluded a request
	grants         []Grant
}

func naive(s *Snapshot) []Grant {
	n := &naiveMatcher{
		Snapshot: s, free: map[*Machine]*naiveFree{}, left: map[*Request]int{}, noFit: map[*Request]bool{},
		limits: newNaiveLimits(s),
		mix:    newNaiveMix(s), usage: map[fairshare.Submitter]float64{},
	}
	for _, m := range s.Machines {
		n.free[m] = newNaiveFree(s, m)
		n.total, n.poolFree = n.total.Add(m.Total), n.poolFree.Add(maxResources(n.free[m].sums(&RequestClass{}),
			n.free[m].sums(&RequestClass{mayReclaim: true})))
	}
	for _, r := range s.Requests {
		n.left[r] = r.Wanted
	}
	for who, st := range s.Shares {
		n.usage[who] = fairshare.CoresWorth(st.Usage, n.total)
	}
	n.placeFirst()
	for band := roost.MonitoringBand; ; band-- {
		n.overSoftLimits, n.softLimited = false, false
		n.placeBand(band)
		if n.overSoftLimits = n.softLimited; n.overSoftLimits {
			n.placeBand(band)
		}
		if band == roost.FreeBand {
			return n.grants
		}
	}
}

// group returns the group that a submitter counts for.
func (n *naiveMatcher) group(who fairshare.Submitter) string {
	var names []string
	for _, g := range n.Groups {
		names = append(names, g.Name)
	}
	return fairshare.NearestGroup(names, who.Group)
}

func (n *naiveMatcher) usageOf(group string) (sum float64) {
	for who, held := range n.usage {
		if n.group(who) == group {
			sum += held
		}
	}
	return sum
}

func (n *naiveMatcher) placeBand(band roost.PriorityBand) {
	n.allowed = nil
	if len(n.Groups) == 0 || band.IsProd() {
		n.placeStreams(band)
		n.takeTurns(band, func(fairshare.Submitter) bool { return true }, math.Inf(1))
		return
	}
	for range maxQuotaRounds {
		wants := func(group string) float64 {
			sum := n.usageOf(group)
			for _, r := range n.Requests {
				if r.Band == band && !r.Now && n.group(r.Submitter) == group && !n.noFit[r] {
					sum += float64(n.left[r]) * fairshare.CoresWorth(r.Class.Resources, n.total)
				}
			}
			return sum
		}
		groups := slices.Clone(n.Groups)
		for i := range groups {
			groups[i].Requested = wants(groups[i].Name)
		}
		divided := fairshare.DivideQuotas(groups, n.total.CPU.Cores(), wants(""), n.Oversubscribe)
		n.allowed = map[string]float64{}
		for _, a := range divided {
			n.allowed[a.Name] = a.Allocated
		}
		starved := func(a fairshare.GroupAllocation) float64 {
			if a.Name == "" {
				return 1e300
			} else if a.Quota <= 0 {
				return 1e200
			}
			return n.usageOf(a.Name) / a.Quota
		}
		slices.SortFunc(divided, func(a, b fairshare.GroupAllocation) int {
			return cmp.Or(cmp.Compare(starved(a), starved(b)), cmp.Compare(a.Name, b.Name))
		})
		before := len(n.grants)
		n.placeStreams(band)
		for _, a := range divided {
			n.takeTurns(band, func(who fairshare.Submitter) bool {
				return n.group(who) == a.Name
			}, max(0, a.Allocated-n.usageOf(a.Name)))
		}
		if len(n.grants) == before {
			return
		}
	}
}

// placeFirst places the requests that are to run now, band by band, the oldest first.
// Nothing else of them is placed later.
func (n *naiveMatcher) placeFirst() {
	queue := slices.DeleteFunc(slices.Clone(n.Requests), func(r *Request) bool { return !r.Now })
	slices.SortFunc(queue, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(b.Band, a.Band), cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key))
	})
	for _, r := range queue {
		for n.left[r] > 0 && !n.noFit[r] && n.mayPlaceOne(r) {
			if m := n.best(r); m != nil {
				n.place(r, m, math.Inf(1))
			} else {
				n.noFit[r] = true
			}
		}
	}
}

// placeStreams gives stream requests all that they want, the oldest first.
func (n *naiveMatcher) placeStreams(band roost.PriorityBand) {
	queue := slices.DeleteFunc(slices.Clone(n.Requests), func(r *Request) bool {
		return r.Band != band || r.Now || r.Class.AppClass != gpu.StreamClass
	})
	slices.SortFunc(queue, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key))
	})
	for _, r := range queue {
		for n.left[r] > 0 && !n.noFit[r] && n.mayPlaceOne(r) {
			if m := n.best(r); m != nil {
				n.place(r, m, math.Inf(1))
			} else {
				n.noFit[r] = true
			}
		}
	}
}

// takeTurns lets some submitters take turns.
func (n *naiveMatcher) takeTurns(band roost.PriorityBand, in func(fairshare.Submitter) bool, most float64) {
	hopeful := func(who fairshare.Submitter) bool {
		return slices.ContainsFunc(n.Requests, func(r *Request) bool {
			return r.Band == band && !r.Now && r.Submitter == who && n.left[r] > 0 && !n.noFit[r]
		})
	}
	var claimants []fairshare.WaitingSubmitter
	for _, r := range n.Requests {
		who, st := r.Submitter, n.Shares[r.Submitter]
		if in(who) && hopeful(who) && !slices.ContainsFunc(claimants, func(c fairshare.WaitingSubmitter) bool {
			return c.Submitter == who
		}) {
			claimants = append(claimants, fairshare.WaitingSubmitter{Submitter: who,
				EffectivePriority: st.EffectivePriority, Usage: n.usage[who], Floor: st.Floor, Ceiling: st.Ceiling})
		}
	}
	slices.SortFunc(claimants, func(a, b fairshare.WaitingSubmitter) int { return a.Submitter.Compare(b.Submitter) })
	turns, stuck := fairshare.NewTurnQueue(claimants), map[*Request]bool{}
	for {
		i, slice, ok := turns.Next(min(fairshare.CoresWorth(n.poolFree, n.total), most))
		if !ok {
			return
		}
		took := n.placeTurn(band, claimants[i].Submitter, slice, stuck)
		turns.AddTaken(i, took)
		most -= took
		if !slices.ContainsFunc(n.Requests, func(r *Request) bool {
			return r.Band == band && !r.Now && r.Submitter == claimants[i].Submitter && n.left[r] > 0 &&
				!n.noFit[r] && !stuck[r]
		}) {
			turns.RemoveClaimant(i)
		}
	}
}

// placeTurn places units of the first of the submitter's requests, by priority and age,
// that can be placed.
func (n *naiveMatcher) placeTurn(band roost.PriorityBand, who fairshare.Submitter, slice float64,
	stuck map[*Request]bool) (took float64) {
	queue := slices.DeleteFunc(slices.Clone(n.Requests), func(r *Request) bool {
		return r.Band != band || r.Now || r.Submitter != who
	})
	slices.SortFunc(queue, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key))
	})
	for took == 0 || took < slice-epsilon {
		var r *Request
		var m *Machine
		for _, q := range queue {
			if n.left[q] == 0 || n.noFit[q] || stuck[q] {
				continue
			}
			if !n.mayPlaceOne(q) {
				stuck[q] = true // a limit that is reached stays so in these turns
			} else if m = n.best(q); m == nil {
				n.noFit[q] = true // what does not fit now never will: machines only fill up
			} else {
				r = q
				break
			}
		}
		if r == nil {
			return took
		}
		took += n.place(r, m, slice-took)
	}
	return took
}

// place puts units on a machine until the slice is full or nothing more fits. On a
// machine with GPUs it places one.
func (n *naiveMatcher) place(r *Request, m *Machine, slice float64) (took float64) {
	unit, units, before := fairshare.CoresWorth(r.Class.Resources, n.total), 0, n.usage[r.Submitter]
	for ok := true; ok; ok = len(n.spreadAttrs(r)) == 0 && m.Total.GPUs == 0 && !n.Score.spreadsUnits() &&
		!(n.MixBands && r.Band.IsProd()) &&
		took < slice-epsilon && n.left[r] > 0 && n.mayPlaceOne(r) && n.free[m].fits(r.Class) {
		n.free[m].take(r.Class)
		n.limits.take(r)
		n.poolFree = n.poolFree.Sub((&Grant{Request: r, Machine: m}).Resources())
		n.left[r]--
		units++
		took = unit * float64(units)
		n.usage[r.Submitter] = before + took
	}
	if last := len(n.grants) - 1; last >= 0 && n.grants[last].Request == r && n.grants[last].Machine == m {
		n.grants[last].Units += units
	} else {
		n.grants = append(n.grants, Grant{Request: r, Machine: m, Units: units})
	}
	return took
}

// mayPlaceOne reports whether limits, ceiling and quota let one more unit start.
func (n *naiveMatcher) mayPlaceOne(r *Request) bool {
	unit, who := fairshare.CoresWorth(r.Class.Resources, n.total), r.Submitter
	if r.Now { // only licences apply to it
		return n.limits.room(r, needs(&Request{Class: r.Class})) > 0
	}
	if c := n.Shares[who].Ceiling; n.room(r) == 0 || c > 0 && n.usage[who]+unit > c+epsilon {
		return false
	}
	group := n.group(who)
	return n.allowed == nil || n.usageOf(group)+unit <= n.allowed[group]+epsilon
}

// room returns how many units of a request may start under its limits. Soft limits count
// unless overSoftLimits is set.
func (n *naiveMatcher) room(r *Request) int {
	hard := n.limits.room(r, needs(r))
	if n.overSoftLimits {
		return hard
	}
	soft := map[string]int{}
	for _, t := range r.SoftLimits {
		soft[t.Limit] += t.Count
	}
	room := min(hard, n.limits.room(r, soft))
	n.softLimited = n.softLimited || room == 0 && hard > 0
	return room
}

// best returns the best machine for a unit of a request, nil if there is none.
func (n *naiveMatcher) best(r *Request) *Machine {
	var top *Machine
	var topKey []float64
	for _, m := range n.Machines {
		if m.drained || !n.free[m].fits(r.Class) || r.Avoid[m.Name] != "" {
			continue
		}
		if !agree(r.Class, m) {
			continue
		}
		rank, _ := classad.Eval(attribute(r.Class.Ad, "Rank"), r.Class.Ad, m.Ad, nil).Number()
		key := append([]float64{-rank}, n.softConstraintScore(r, m)...)
		key = append(key, n.free[m].score(r.Class, m, n.mix)+n.mixScore(r, m))
		if c := slices.Compare(key, topKey); top == nil || c < 0 || c == 0 && m.Name < top.Name {
			top, topKey = m, key
		}
	}
	return top
}

// softConstraintScore returns how badly a machine meets the soft constraints of a
// request.
func (n *naiveMatcher) softConstraintScore(r *Request, m *Machine) []float64 {
	liked, missing, crowd := 0.0, 0.0, 0.0
	for _, e := range r.Class.Prefer {
		if holds, ok := classad.Eval(e, r.Class.Ad, m.Ad, nil).Bool(); ok && holds {
			liked++
		}
	}
	has, _ := m.Ad.Strings("Packages")
	for _, p := range r.Class.PreferredPackages {
		if !slices.Contains(has, p) {
			missing++
		}
	}
	key := []float64{-liked, missing}
	for _, attr := range n.spreadAttrs(r) {
		crowd = 0
		for _, o := range n.Machines {
			if o.Ad.Eval(attr, nil).String() != m.Ad.Eval(attr, nil).String() {
				continue
			}
			for _, g := range n.grants {
				if g.Request == r && g.Machine == o {
					crowd += float64(g.Units)
				}
			}
			for _, one := range n.Pending[o.Name] {
				if one.Request == r.Key {
					crowd++
				}
			}
			for _, c := range o.Claims {
				if r.Class.Job != "" && c.Job == r.Class.Job || c.Job == strings.Replace(r.Class.Job, ".", "[3].", 1) {
					crowd++
				}
			}
		}
		key = append(key, crowd)
	}
	return key
}

// attribute returns the first of some attributes that an ad has, or true.
func attribute(ad *classad.Ad, names ...string) classad.Expr {
	for _, name := range names {
		if e, ok := ad.Lookup(name); ok {
			return e
		}
	}
	return classad.BoolValue(true).Expr()
}

// naiveLimits counts what is left of each limit.
type naiveLimits map[string]int

func newNaiveLimits(s *Snapshot) naiveLimits {
	left := naiveLimits{}
	for name, l := range s.Limits {
		left[name] = l.Total - l.Used
	}
	return left
}

// room returns how many units of a request may start.
func (l naiveLimits) room(r *Request, needs map[string]int) int {
	n := r.Wanted
	for name, count := range needs {
		if left, known := l[name]; known {
			n = min(n, max(0, left)/count)
		}
	}
	return n
}

func (l naiveLimits) take(r *Request) {
	for name, count := range needs(r) {
		if _, known := l[name]; known {
			l[name] -= count
		}
	}
	for _, t := range r.SoftLimits {
		if _, known := l[t.Limit]; known {
			l[t.Limit] -= t.Count
		}
	}
}

// needs returns what a unit of a request takes of each limit.
func needs(r *Request) map[string]int {
	all := map[string]int{}
	for _, l := range r.Class.Limits {
		all[l.Name] += l.Count
	}
	for _, t := range r.RunLimits {
		all[t.Limit] += t.Count
	}
	return all
}

// naiveFree is what is free of a machine: by unit, or as sums.
type naiveFree struct {
	units       *gpu.FreeResources
	sumsByClass [2]roost.Resources // by appclass
	total       roost.Resources
	busy        bool // it has claims
}

func newNaiveFree(s *Snapshot, m *Machine) *naiveFree {
	f := &naiveFree{total: m.Total, busy: len(m.Claims) > 0}
	if m.freeByUnit {
		f.units = m.units.Clone()
		f.units.SetReclaim(m.Reclaim != roost.ReclaimOff && m.Reclaim <= s.Reclaim)
	} else {
		f.sumsByClass = [2]roost.Resources{m.Free, m.Free}
		f.sumsByClass[gpu.StreamClass].CPU = m.streamFree
	}
	for _, p := range s.Pending[m.Name] {
		c := &RequestClass{Resources: p.Resources, AppClass: p.Class, mayReclaim: p.MayReclaim}
		if f.units == nil || f.fits(c) {
			f.take(c)
		}
	}
	return f
}

func (f *naiveFree) sums(c *RequestClass) roost.Resources {
	if f.units == nil {
		return f.sumsByClass[c.AppClass]
	}
	r := f.units.LeftForRequest(c.mayReclaim)
	if c.AppClass == gpu.StreamClass {
		r.CPU = 0
		for i := range f.units.Len() {
			if u := f.units.UnitFree(i, c.AppClass); !c.mayReclaim {
				r.CPU = max(r.CPU, u.CPU)
			} else {
				r.CPU = max(r.CPU, f.units.Reclaimable(i, c.AppClass).CPU)
			}
		}
	}
	return r
}

func (f *naiveFree) fits(c *RequestClass) bool {
	if c.Exclusive && (f.busy || f.units != nil && !f.units.IsIdle() || f.units == nil &&
		(f.sumsByClass[gpu.BatchClass] != f.total || f.sumsByClass[gpu.StreamClass].CPU < f.total.CPU)) {
		return false
	}
	if f.units == nil {
		return c.Resources.FitsIn(f.sumsByClass[c.AppClass]) && c.Resources.GPUMemory == 0
	}
	_, err := f.units.PlaceOrExplain(c.deviceRequest())
	return err == nil
}

func (f *naiveFree) take(c *RequestClass) {
	if f.units != nil {
		p, _ := f.units.PlaceOrExplain(c.deviceRequest())
		if c.Exclusive {
			p, _ = f.units.WholeMachine()
		}
		f.units.TakePlacement(p)
		return
	}
	if c.Exclusive {
		f.sumsByClass = [2]roost.Resources{}
		return
	}
	for app := range f.sumsByClass {
		r := c.Resources
		if gpu.AppClass(app) != c.AppClass {
			r.CPU = 0
		}
		f.sumsByClass[app] = f.sumsByClass[app].Sub(r)
	}
}
