package match

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// naive plans by the rules in the package's comment and nothing else: no tables, no heaps. Every unit looks at every machine.
func naive(s *Snapshot) []Grant {
	free, total, spare := map[*Machine]*naiveFree{}, roost.Resources{}, roost.Resources{}
	for _, m := range s.Machines {
		free[m] = newNaiveFree(s, m)
		total, spare = total.Add(m.Total), spare.Add(atLeast(free[m].sums(gpu.Batch), roost.Resources{}))
	}
	left, limits := map[*Request]int{}, newNaiveLimits(s)
	for _, r := range s.Requests {
		left[r] = r.Wanted
	}
	hopeful := func(band roost.Band, who share.Submitter) bool {
		return slices.ContainsFunc(s.Requests, func(r *Request) bool { return r.Band == band && r.Submitter == who && left[r] > 0 })
	}
	best := func(r *Request) *Machine {
		var top *Machine
		var topRank, topScore float64
		for _, m := range s.Machines {
			if left[r] == 0 || limits.room(r) == 0 || m.drained || !free[m].fits(r.Class) || r.Avoid[m.Name] != "" {
				continue
			}
			if !classad.Eval(attribute(r.Class.Ad, "Requirements"), r.Class.Ad, m.Ad, nil).IsTrue() ||
				!classad.Eval(attribute(m.Ad, "Requirements", "Start"), m.Ad, r.Class.Ad, nil).IsTrue() {
				continue
			}
			rank, _ := classad.Eval(attribute(r.Class.Ad, "Rank"), r.Class.Ad, m.Ad, nil).Number()
			sc := free[m].score(r.Class)
			if top == nil || rank > topRank || rank == topRank && (sc < topScore || sc == topScore && m.Name < top.Name) {
				top, topRank, topScore = m, rank, sc
			}
		}
		return top
	}
	var grants []Grant
	for band := roost.Monitoring; ; band-- {
		var who []share.Submitter
		for _, r := range s.Requests {
			if r.Band == band && r.Wanted > 0 && !slices.Contains(who, r.Submitter) {
				who = append(who, r.Submitter)
			}
		}
		slices.SortFunc(who, share.Submitter.Compare)
		var claimants []share.Claimant
		for _, w := range who {
			st := s.Standing[w]
			claimants = append(claimants, share.Claimant{Submitter: w, Effective: st.Effective, Held: share.Weight(st.Held, total)})
		}
		turns := share.NewTurns(claimants)
		for {
			i, slice, ok := turns.Next(share.Weight(spare, total))
			if !ok {
				break
			}
			took := 0.0
			for took == 0 || took < slice-dust {
				// The first of the submitter's requests, by priority and age, that can be placed.
				var r *Request
				var m *Machine
				queue := slices.DeleteFunc(slices.Clone(s.Requests), func(r *Request) bool { return r.Band != band || r.Submitter != who[i] })
				slices.SortFunc(queue, func(a, b *Request) int {
					switch {
					case a.Priority != b.Priority:
						return int(b.Priority) - int(a.Priority)
					case a.Oldest != b.Oldest:
						return int(a.Oldest - b.Oldest)
					}
					return a.Key.Compare(b.Key)
				})
				for _, q := range queue {
					if m = best(q); m != nil {
						r = q
						break
					}
					left[q] = 0 // what does not fit now never will: machines only fill up
				}
				if r == nil {
					break
				}
				unit := share.Weight(r.Class.Resources, total)
				// As many as fit into what was the slice when this machine was chosen.
				n := 0
				for ok := true; ok; ok = float64(n)*unit < slice-took-dust && left[r] > 0 && limits.room(r) > 0 && free[m].fits(r.Class) {
					free[m].take(r.Class)
					limits.take(r)
					spare = spare.Sub(r.Class.Resources)
					left[r]--
					n++
				}
				took += unit * float64(n)
				if last := len(grants) - 1; last >= 0 && grants[last].Request == r && grants[last].Machine == m {
					grants[last].Units += n
				} else {
					grants = append(grants, Grant{Request: r, Machine: m, Units: n})
				}
			}
			turns.Took(i, took)
			if !hopeful(band, who[i]) {
				turns.Leave(i)
			}
		}
		if band == roost.Free {
			return grants
		}
	}
}

// attribute is the first of some attributes that an ad has, or true.
func attribute(ad *classad.Ad, names ...string) classad.Expr {
	for _, name := range names {
		if e, ok := ad.Lookup(name); ok {
			return e
		}
	}
	return classad.BoolValue(true).Expr()
}

// randomCell makes a small cell. All its amounts are powers of two, so that sums of weights do not depend on the order of adding.
func randomCell(t testing.TB, rng *rand.Rand) *Snapshot {
	s := &Snapshot{Standing: map[share.Submitter]Standing{}, Pending: map[string][]Promise{}}
	arch := []string{"X86_64", "aarch64"}
	policies := []string{"", "; Start = true", `; Start = TARGET.Owner != "u1"`, "; Requirements = MY.Start; Start = TARGET.RequestCpus <= 2"}
	for i := range rng.IntN(8) {
		total := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB, GPUs: rng.IntN(2) * 4}
		free := roost.Resources{CPU: roost.MilliCPU(rng.IntN(9)) * 1000, Memory: roost.Bytes(rng.IntN(9)) * roost.GiB, GPUs: total.GPUs}
		exprs := fmt.Sprintf(`Arch = "%s"; Speed = %d%s`, arch[rng.IntN(2)], rng.IntN(3), policies[rng.IntN(len(policies))])
		name := fmt.Sprintf("m%d", i)
		ad := machineAd(t, name, total, free, exprs)
		if rng.IntN(2) == 0 {
			randomUnits(rng).Describe(ad)
		}
		s.Machines = append(s.Machines, NewMachine(name, 1, 1, ad))
		if rng.IntN(4) == 0 {
			s.Pending[name] = []Promise{{Resources: roost.Resources{CPU: 1000, Memory: roost.GiB}}}
		}
	}
	s.Limits = map[string]Limit{}
	for i := range 2 {
		s.Limits[fmt.Sprintf("lic%d", i)] = Limit{Total: rng.IntN(8), Used: rng.IntN(3)}
		s.Limits[fmt.Sprintf("run%d", i)] = Limit{Total: rng.IntN(20), Label: "somebody's limit"}
	}
	requirements := []string{"", `Requirements = TARGET.Arch == "X86_64"; `, "Requirements = TARGET.Memory >= 4096 && TARGET.Speed > 0; ", "Requirements = Undefined; "}
	ranks := []string{"", "Rank = TARGET.Speed", "Rank = -TARGET.Memory"}
	for i := range rng.IntN(8) {
		who := share.Submitter{Owner: fmt.Sprintf("u%d", rng.IntN(3))}
		band := roost.Band(rng.IntN(3))
		r := roost.Resources{CPU: 1000 << rng.IntN(3), Memory: roost.GiB << rng.IntN(2), GPUs: rng.IntN(4) / 3}
		app := ""
		if rng.IntN(6) == 0 {
			app = `; AppClass = "stream"`
		}
		if r.GPUs > 0 && rng.IntN(2) == 0 {
			r.GPUs, r.GPUMemory = 1<<rng.IntN(2), roost.GiB<<rng.IntN(4)
		}
		class, err := NewClass("["+requirements[rng.IntN(4)]+ranks[rng.IntN(3)]+app+randomWishes(rng)+"]", who, band, r)
		if err != nil {
			t.Fatal(err)
		}
		req := &Request{
			Key: Key{"s", uint64(i)}, Submitter: who, Band: band, Priority: int32(rng.IntN(2)), Oldest: int64(rng.IntN(3)),
			Wanted: rng.IntN(12), Class: class, Explain: rng.IntN(2) == 0,
		}
		if rng.IntN(5) == 0 {
			req.Avoid = map[string]string{"m1": "because"}
		}
		for j := range rng.IntN(2) {
			req.RunLimits = append(req.RunLimits, fmt.Sprintf("run%d", rng.IntN(2)+j))
		}
		s.Requests = append(s.Requests, req)
		s.Standing[who] = Standing{Effective: float64(int(512) << rng.IntN(2)), Held: roost.Resources{CPU: roost.MilliCPU(rng.IntN(4)) * 1000}}
	}
	return s
}

// randomWishes are what else the ad of a request may ask for.
func randomWishes(rng *rand.Rand) (text string) {
	if rng.IntN(3) == 0 {
		text += fmt.Sprintf(`; ConcurrencyLimits = "lic%d:%d"`, rng.IntN(3), 1+rng.IntN(2))
	}
	return text
}

func show(grants []Grant) string {
	var b strings.Builder
	for _, g := range grants {
		fmt.Fprintf(&b, "%v: %d on %s\n", g.Request.Key, g.Units, g.Machine.Name)
	}
	return b.String()
}

// TestOracle holds plans for random cells against the naive matcher, each cell twice with one matcher, the second time after a change.
func TestOracle(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, matcher := randomCell(t, rng), NewMatcher()
		for round := range 2 {
			plan := matcher.Plan(s)
			checkPlan(t, s, plan)
			if got, want := show(plan.Grants), show(naive(s)); got != want {
				t.Fatalf("seed %d round %d:\ngot:\n%swant:\n%s", seed, round, got, want)
			}
			if again := matcher.Plan(s); !reflect.DeepEqual(again.Unplaced, plan.Unplaced) {
				t.Fatalf("seed %d: the same snapshot gives two plans", seed)
			}
			if len(s.Machines) > 0 {
				i := rng.IntN(len(s.Machines))
				old := s.Machines[i]
				total := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB}
				s.Machines[i] = NewMachine(old.Name, 1, 2, machineAd(t, old.Name, total, total, `Arch = "X86_64"; Speed = 1`))
			}
		}
	}
}

// TestExplained holds that every machine is counted once for each request that waits.
func TestExplained(t *testing.T) {
	for seed := range uint64(500) {
		s := randomCell(t, rand.New(rand.NewPCG(seed, 2)))
		for _, u := range NewMatcher().Plan(s).Unplaced {
			if u.Explanation == nil {
				continue
			}
			sum := 0
			for _, r := range u.Explanation.Reasons {
				sum += r.Machines
			}
			if sum != len(s.Machines) || u.Explanation.Machines != len(s.Machines) {
				t.Fatalf("seed %d: %d machines are counted, and there are %d: %+v", seed, sum, len(s.Machines), u.Explanation)
			}
		}
	}
}

// naiveFree is what is free of a machine: of its units, or of the sum.
type naiveFree struct {
	units *gpu.Free
	plain [2]roost.Resources // by class
	total roost.Resources
}

func newNaiveFree(s *Snapshot, m *Machine) *naiveFree {
	f := &naiveFree{total: m.Total}
	if m.split {
		f.units = m.units.Clone()
	} else {
		f.plain = [2]roost.Resources{m.Free, m.Free}
		f.plain[gpu.Stream].CPU = m.stream
	}
	for _, p := range s.Pending[m.Name] {
		c := &Class{Resources: p.Resources, App: p.Class}
		if f.units == nil || f.fits(c) {
			f.take(c)
		}
	}
	return f
}

func (f *naiveFree) sums(app gpu.Class) roost.Resources {
	if f.units == nil {
		return f.plain[app]
	}
	r := f.units.Left()
	if app == gpu.Stream {
		r.CPU = 0
		for i := range f.units.Len() {
			r.CPU = max(r.CPU, f.units.UnitFree(i, app).CPU)
		}
	}
	return r
}

func (f *naiveFree) fits(c *Class) bool {
	if f.units == nil {
		return c.Resources.Fits(f.plain[c.App]) && c.Resources.GPUMemory == 0
	}
	_, err := f.units.Place(c.request())
	return err == nil
}

func (f *naiveFree) score(c *Class) float64 {
	if f.units == nil {
		return score(c.Resources, f.plain[c.App], f.total)
	}
	p, _ := f.units.Place(c.request())
	return scoreSplit(c.Resources, f.sums(c.App), f.total, f.units.Devices(), p.Shares)
}

func (f *naiveFree) take(c *Class) {
	if f.units != nil {
		p, _ := f.units.Place(c.request())
		f.units.Take(p)
		return
	}
	for app := range f.plain {
		r := c.Resources
		if gpu.Class(app) != c.App {
			r.CPU = 0
		}
		f.plain[app] = f.plain[app].Sub(r)
	}
}

// randomUnits makes a machine of one of the layouts of HRM figure 2, of which something is taken.
func randomUnits(rng *rand.Rand) *gpu.Free {
	device := func(i int) gpu.Device {
		return gpu.Device{UUID: fmt.Sprintf("GPU-%d", i), NUMA: i % 2, Memory: 4 * roost.GiB << rng.IntN(2), Health: gpu.Healthy()}
	}
	cpu := func(name string, cores roost.MilliCPU, memory roost.Bytes, devices ...gpu.Device) gpu.Unit {
		return gpu.Unit{Name: name, NUMA: -1, CPU: cores, Memory: memory, Devices: devices}
	}
	var units []gpu.Unit
	switch rng.IntN(4) {
	case 0: // one unit
		units = []gpu.Unit{cpu("cpu", 8000, 8*roost.GiB)}
	case 1: // shared
		units = []gpu.Unit{cpu("cpu", 8000, 8*roost.GiB), cpu("gpu0", 0, 0, device(0)), cpu("gpu1", 0, 0, device(1))}
	case 2: // pinned
		units = []gpu.Unit{cpu("gpu0", 2000, 2*roost.GiB, device(0)), cpu("gpu1", 2000, 2*roost.GiB, device(1)), cpu("cpu", 4000, 4*roost.GiB)}
	default: // even
		units = []gpu.Unit{cpu("gpu0", 4000, 4*roost.GiB, device(0)), cpu("gpu1", 4000, 4*roost.GiB, device(1))}
	}
	f := gpu.NewFree(units, roost.TiB)
	for range rng.IntN(4) {
		r := gpu.Request{Resources: roost.Resources{CPU: 1000 << rng.IntN(2), Memory: roost.GiB}, Class: gpu.Class(rng.IntN(2))}
		if rng.IntN(2) == 0 {
			r.GPUs, r.GPUMemory = 1, roost.GiB<<rng.IntN(2)
		}
		if p, err := f.Place(r); err == nil {
			f.Take(p)
		}
	}
	return f
}
