package match

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// randomCell makes a small cell. All its amounts are powers of two, so that sums of
// weights do not depend on the order of adding.
func randomCell(t testing.TB, rng *rand.Rand) *Snapshot {
	s := &Snapshot{Shares: map[fairshare.Submitter]SubmitterShare{}, Pending: map[string][]PendingGrant{},
		Reclaim: roost.ReclaimLevel(rng.IntN(4))}
	arch := []string{"X86_64", "aarch64"}
	policies := []string{"", "; Start = true", `; Start = TARGET.Owner != "u1"`,
		"; Requirements = MY.Start; Start = TARGET.RequestCpus <= 2"}
	for i := range rng.IntN(8) * (1 + rng.IntN(4)/3*2) {
		total := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB, GPUs: rng.IntN(2) * 4}
		free := roost.Resources{CPU: roost.MilliCPU(rng.IntN(9)) * 1000, Memory: roost.Bytes(rng.IntN(9)) * roost.GiB,
			GPUs: total.GPUs}
		exprs := fmt.Sprintf(`Arch = "%s"; Speed = %d%s%s`, arch[rng.IntN(2)], rng.IntN(3),
			policies[rng.IntN(len(policies))], randomMachineAttrs(rng))
		name := fmt.Sprintf("m%02d", i)
		ad := machineAd(t, name, total, free, exprs)
		if rng.IntN(2) == 0 {
			f := randomUnits(rng)
			if f.Describe(ad); f.IsReclaiming() {
				ad.SetString(roost.AttrReclaim, roost.ReclaimLevel(1+rng.IntN(3)).String())
			}
		}
		m := NewMachine(name, 1, 1, ad)
		for range rng.IntN(3) / 2 {
			m.Claims = append(m.Claims, MachineClaim{Job: []string{"1.h", "1[3].h", "0[3].h", "11.h"}[rng.IntN(4)]})
		}
		s.Machines = append(s.Machines, m)
		if rng.IntN(4) == 0 {
			s.Pending[name] = []PendingGrant{{Request: RequestKey{"s", uint64(rng.IntN(4))},
				Resources: roost.Resources{CPU: 1000, Memory: roost.GiB}, MayReclaim: rng.IntN(2) == 0}}
		}
	}
	s.Limits = map[string]ConcurrencyLimit{}
	for i := range 2 {
		s.Limits[fmt.Sprintf("lic%d", i)] = ConcurrencyLimit{Total: rng.IntN(8), Used: rng.IntN(3)}
		s.Limits[fmt.Sprintf("run%d", i)] = ConcurrencyLimit{Total: rng.IntN(20), Label: "somebody's limit"}
	}
	for _, name := range []string{"a", "a.x", "b"} {
		if rng.IntN(3) == 0 {
			g := fairshare.AccountingGroup{Name: name, Quota: float64(rng.IntN(16)), AcceptsSurplus: rng.IntN(2) == 0,
				Dynamic: rng.IntN(2) == 0}
			if g.Dynamic {
				g.Quota /= 16
			}
			s.Groups = append(s.Groups, g)
		}
	}
	requirements := []string{"", `Requirements = TARGET.Arch == "X86_64"; `,
		"Requirements = TARGET.Memory >= 4096 && TARGET.Speed > 0; ", "Requirements = Undefined; "}
	ranks := []string{"", "Rank = TARGET.Speed", "Rank = -TARGET.Memory"}
	for i := range rng.IntN(8) {
		who := fairshare.Submitter{Owner: fmt.Sprintf("u%d", rng.IntN(3)),
			Group: []string{"", "a", "a.x", "b.y"}[rng.IntN(4)]}
		band := roost.PriorityBand(rng.IntN(3))
		r := roost.Resources{CPU: 1000 << rng.IntN(3), Memory: roost.GiB << rng.IntN(2), GPUs: rng.IntN(4) / 3}
		app := ""
		if rng.IntN(6) == 0 {
			app = `; AppClass = "stream"`
		} else if rng.IntN(6) == 0 {
			app = "; Exclusive = true"
		}
		if r.GPUs > 0 && rng.IntN(2) == 0 {
			r.GPUs, r.GPUMemory = 1<<rng.IntN(2), roost.GiB<<rng.IntN(4)
		}
		class, err := NewClass("["+requirements[rng.IntN(4)]+ranks[rng.IntN(3)]+app+randomSoftConstraints(rng)+"]",
			who, band, r)
		if err != nil {
			t.Fatal(err)
		}
		req := &Request{
			Key: RequestKey{"s", uint64(i)}, Submitter: who, Band: band, Priority: int32(rng.IntN(2)),
			Oldest: int64(rng.IntN(3)),
			Wanted: rng.IntN(12), Class: class, Explain: rng.IntN(2) == 0,
		}
		req.Now = rng.IntN(10) == 0
		if rng.IntN(5) == 0 {
			req.Avoid = map[string]string{"m01": "because"}
		}
		for j := range rng.IntN(2) {
			req.RunLimits = append(req.RunLimits,
				LimitRequest{Limit: fmt.Sprintf("run%d", rng.IntN(2)+j), Count: 1 + rng.IntN(2)})
		}
		s.Requests = append(s.Requests, req)
		s.Shares[who] = SubmitterShare{EffectivePriority: float64(int(512) << rng.IntN(2)),
			Usage:   roost.Resources{CPU: roost.MilliCPU(rng.IntN(4)) * 1000},
			Ceiling: float64(rng.IntN(2) * (1 + rng.IntN(20))), Floor: float64(rng.IntN(8) / 4 * 4)}
	}
	return s
}

// randomSoftConstraints returns other attributes of a request's ad: limits, spread,
// packages and preferences.
func randomSoftConstraints(rng *rand.Rand) (text string) {
	if rng.IntN(3) == 0 {
		text += fmt.Sprintf(`; ConcurrencyLimits = "lic%d:%d"`, rng.IntN(3), 1+rng.IntN(2))
	}
	if rng.IntN(4) == 0 {
		text += fmt.Sprintf(`; Spread = "Rack"; JobId = "%d.h"`, rng.IntN(2))
	}
	if rng.IntN(4) == 0 {
		text += `; Packages = {"r", "gcc", "absent"}`
	}
	if rng.IntN(4) == 0 {
		text += `; Prefer = {"TARGET.Speed > 0", "TARGET.Rack == 1", "TARGET.Memory"}`
	}
	return text
}

// randomMachineAttrs returns a machine's rack and packages.
func randomMachineAttrs(rng *rand.Rand) (text string) {
	if rng.IntN(4) > 0 {
		text += fmt.Sprintf("; Rack = %d", rng.IntN(3))
	}
	if rng.IntN(2) == 0 {
		text += `; Packages = {"gcc"` + []string{"", `, "r"`}[rng.IntN(2)] + "}"
	}
	return text
}

func grantsText(grants []Grant) string {
	var b strings.Builder
	for _, g := range grants {
		fmt.Fprintf(&b, "%v: %d on %s%s\n", g.Request.Key, g.Units, g.Machine.Name, victimsText(&g))
	}
	return b.String()
}

// addSoftLimits gives some requests soft limits.
func addSoftLimits(rng *rand.Rand, s *Snapshot) {
	for i := range 2 {
		s.Limits[fmt.Sprintf("soft%d", i)] = ConcurrencyLimit{Total: rng.IntN(8), Used: rng.IntN(3)}
	}
	for _, r := range s.Requests {
		if rng.IntN(2) == 0 {
			r.SoftLimits = []LimitRequest{{Limit: fmt.Sprintf("soft%d", rng.IntN(2)), Count: 1 + rng.IntN(2)}}
		}
	}
}

// TestOracle compares plans of random cells with the naive matcher. Each cell is planned
// several times with one matcher while things change.
func TestOracle(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, matcher := randomCell(t, rng), NewMatcher()
		matcher.minCandidates = 1
		s.Score = ScorePolicy(max(0, int(seed%8)-4)) // half of the seeds use the default score
		s.FailureDomains, s.MixBands = [][]string{nil, nil, {"Rack"}, {"Speed", "Rack"}}[seed%4], seed%3 == 0
		// with soft limits, quotas are divided in more rounds, which the naive matcher
		// counts differently
		if seed%2 == 1 && len(s.Groups) == 0 {
			addSoftLimits(rand.New(rand.NewPCG(seed, 2)), s)
		}
		for round := range 5 {
			plan := matcher.Plan(s)
			checkPlan(t, s, plan)
			if got, want := grantsText(plan.Grants), grantsText(naive(s)); got != want {
				t.Fatalf("seed %d round %d:\ngot:\n%swant:\n%s", seed, round, got, want)
			}
			if again := matcher.Plan(s); !reflect.DeepEqual(again.Unplaced, plan.Unplaced) {
				t.Fatalf("seed %d: the same snapshot gives two plans", seed)
			}
			changeCell(t, rng, s)
			if seed%16 == 0 {
				matcher = NewMatcher() // a new leader takes over
			}
		}
	}
}

// newMatcherCopy returns a copy of a snapshot that no matcher has seen.
func newMatcherCopy(s *Snapshot) *Snapshot {
	c := *s
	c.Machines, c.Requests = nil, nil
	for _, m := range s.Machines {
		machine := *m
		machine.inMatcher = nil
		c.Machines = append(c.Machines, &machine)
	}
	for _, r := range s.Requests {
		request, class := *r, *r.Class
		class.compiledFor = nil
		request.Class, request.Parts = &class, nil
		for _, part := range r.Parts {
			one, class := *part, *part.Class
			class.compiledFor, one.Class = nil, &class
			request.Parts = append(request.Parts, &one)
		}
		c.Requests = append(c.Requests, &request)
	}
	return &c
}

// changeCell makes random changes in a cell between two plans.
func changeCell(t *testing.T, rng *rand.Rand, s *Snapshot) {
	if rng.IntN(3) == 0 {
		s.Reclaim = roost.ReclaimLevel(rng.IntN(4))
	}
	fresh := func(name string) *Machine {
		total := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB}
		return NewMachine(name, 1, 2, machineAd(t, name, total, total, `Arch = "X86_64"; Speed = 1`))
	}
	for range rng.IntN(3) {
		switch what := rng.IntN(7); {
		case what == 0: // a machine comes
			s.Machines = append(slices.Clone(s.Machines), fresh(fmt.Sprintf("n%d", rng.Uint32())))
		case len(s.Machines) == 0:
		case what == 1: // a machine goes
			s.Machines = slices.Delete(slices.Clone(s.Machines), 0, 1)
		case what < 4: // a machine changes
			i := rng.IntN(len(s.Machines))
			s.Machines[i] = fresh(s.Machines[i].Name)
		default: // a pending grant is added, or shows in the ad
			name := s.Machines[rng.IntN(len(s.Machines))].Name
			if len(s.Pending[name]) > 0 {
				delete(s.Pending, name)
			} else {
				s.Pending[name] = []PendingGrant{{Resources: roost.Resources{CPU: 2000, Memory: roost.GiB}}}
			}
		}
	}
	slices.SortFunc(s.Machines, func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range s.Requests {
		if rng.IntN(4) == 0 {
			r.Wanted = rng.IntN(12)
		}
		if rng.IntN(8) == 0 {
			r.Avoid = nil
		}
	}
}

// TestExplained checks that every machine is counted once for each waiting request.
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
				t.Fatalf("seed %d: %d machines are counted, and there are %d: %+v", seed, sum, len(s.Machines),
					u.Explanation)
			}
		}
	}
}

// randomUnits makes a machine of one of the layouts of HRM figure 2, with some of it
// taken.
func randomUnits(rng *rand.Rand) *gpu.FreeResources {
	device := func(i int) gpu.Device {
		return gpu.Device{UUID: fmt.Sprintf("GPU-%d", i), NUMANode: i % 2, Memory: 4 * roost.GiB << rng.IntN(2),
			Health: gpu.HealthyDevice()}
	}
	cpu := func(name string, cores roost.MilliCPU, memory roost.Bytes, devices ...gpu.Device) gpu.ResourceUnit {
		return gpu.ResourceUnit{Name: name, NUMA: -1, CPU: cores, Memory: memory, Devices: devices}
	}
	var units []gpu.ResourceUnit
	switch rng.IntN(4) {
	case 0: // one unit
		units = []gpu.ResourceUnit{cpu("cpu", 8000, 8*roost.GiB)}
	case 1: // shared
		units = []gpu.ResourceUnit{cpu("cpu", 8000, 8*roost.GiB), cpu("gpu0", 0, 0, device(0)),
			cpu("gpu1", 0, 0, device(1))}
	case 2: // pinned
		units = []gpu.ResourceUnit{cpu("gpu0", 2000, 2*roost.GiB, device(0)), cpu("gpu1", 2000, 2*roost.GiB, device(1)),
			cpu("cpu", 4000, 4*roost.GiB)}
	default: // even
		units = []gpu.ResourceUnit{cpu("gpu0", 4000, 4*roost.GiB, device(0)), cpu("gpu1", 4000, 4*roost.GiB, device(1))}
	}
	f := gpu.NewFree(units, roost.TiB)
	f.SetReclaim(rng.IntN(2) == 0)
	for range rng.IntN(6) {
		r := gpu.DeviceRequest{Resources: roost.Resources{CPU: 1000 << rng.IntN(2), Memory: roost.GiB},
			Class: gpu.AppClass(rng.IntN(2))}
		if rng.IntN(2) == 0 {
			r.GPUs, r.GPUMemory = 1, roost.GiB<<rng.IntN(2)
		}
		r.MayReclaim = rng.IntN(2) == 0
		if p, err := f.PlaceOrExplain(r); err == nil {
			f.TakePlacement(p)
			if f.IsReclaiming() {
				f.SetUsageEstimate(&p, roost.MilliCPU(rng.IntN(5))*500, roost.Bytes(rng.IntN(5))*roost.GiB/4)
			}
		}
	}
	return f
}
