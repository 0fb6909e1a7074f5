package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// addClaims adds claims to existing machines, in the form in which startds advertise
// them.
func (c *scriptCell) addClaims(lines []string) string {
	for _, line := range lines {
		name, pairs, _ := words(line)
		i := slices.IndexFunc(c.snapshot.Machines, func(m *Machine) bool { return m.Name == name })
		old := c.snapshot.Machines[i]
		r := c.resources(pairs, "", roost.Resources{CPU: 1000})
		ad, text := old.Ad.Copy(), classad.New()
		text.SetInt(roost.AttrClaimID, int64(c.number(pairs["id"])))
		text.SetString(roost.AttrOwner, pairs["owner"])
		text.SetString(roost.AttrBand, pairs["band"])
		text.SetString(roost.AttrAppClass, c.class(pairs).String())
		c.setTimes(text, pairs)
		free := old.Free
		var p gpu.Placement
		if old.units != nil {
			f := old.units.Clone()
			var err error
			p, err = f.PlaceOrExplain(gpu.DeviceRequest{Resources: r, Class: c.class(pairs)})
			c.checkNoError(err)
			f.TakePlacement(p)
			f.Describe(ad)
			free = f.LeftForBatch()
		} else {
			free = free.Sub(r)
		}
		p.Describe(text)
		setAmounts(ad, free)
		setAmounts(text, r)
		c.tenants[name] = append(c.tenants[name], classad.AdOf(text))
		ad.SetValue(roost.AttrClaims, classad.ListValue(c.tenants[name]...))
		c.sequence++
		m := NewMachine(name, 1, c.sequence, ad)
		c.checkNoError(m.ClaimsUnknown)
		c.snapshot.Machines[i] = m
	}
	return "ok"
}

// setTimes sets the times of a claim's task, given as seconds before now, and the other
// properties of the task.
func (c *scriptCell) setTimes(ad *classad.Ad, pairs map[string]string) {
	now := c.snapshot.Now.Unix()
	for word, attr := range map[string]string{"ran": roost.AttrSince, "saved": roost.AttrSaved, "left": roost.AttrEnds,
		"likely": roost.AttrExpected, "overdue": roost.AttrExpected} {
		if n := int64(c.number(pairs[word])); n > 0 && (word == "left" || word == "likely") {
			ad.SetInt(attr, now+n)
		} else if n > 0 {
			ad.SetInt(attr, now-n)
		}
	}
	for word, attr := range map[string]string{"can": roost.AttrCheckpointable, "once": roost.AttrOnce,
		"leaving": roost.AttrLeaving, "heir": roost.AttrWaits} {
		if pairs[word] != "" {
			ad.SetBool(attr, true)
		}
	}
	if pairs["rank"] != "" {
		ad.SetReal(roost.AttrRank, float64(c.number(pairs["rank"])))
	}
	for word, attr := range map[string]string{"prio": roost.AttrPriority, "attempt": roost.AttrClaimAttempt} {
		if pairs[word] != "" {
			ad.SetInt(attr, int64(c.number(pairs[word])))
		}
	}
	if pairs["job"] != "" {
		ad.SetString(roost.AttrJob, pairs["job"])
	}
}

func setAmounts(ad *classad.Ad, r roost.Resources) {
	ad.SetReal(roost.AttrCpus, r.CPU.Cores())
	ad.SetReal(roost.AttrMemory, float64(r.Memory)/float64(roost.MiB))
	ad.SetReal(roost.AttrDisk, float64(r.Disk)/float64(roost.KiB))
	ad.SetInt(roost.AttrGpus, int64(r.GPUs))
}

// setPreemption reads the preemption policy: cell=N job=N evicted=JOB:N fair=EXPRESSION,
// the last to the line's end.
func (c *scriptCell) setPreemption(lines []string) string {
	s := &c.snapshot.Preemption
	*s = PreemptionPolicy{}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "cell":
			s.HasBudgets, s.MaxInCycle = true, c.number(value)
			s.PerJob = max(s.PerJob, 1000)
		case "job":
			s.HasBudgets, s.PerJob = true, c.number(value)
			s.MaxInCycle = max(s.MaxInCycle, 1000)
		case "evicted":
			job, n, _ := strings.Cut(value, ":")
			s.EvictionsByJob = map[string]int{job: c.number(n)}
		case "fair":
			e, err := classad.ParseExpr(value)
			c.checkNoError(err)
			s.FairShare = &FairSharePreemption{Allows: e, MinRuntime: 3600e9}
		case "priority": // priority=STEP: after 600 s, up to 3 attempts
			s.InBand = &InBandPreemption{Step: c.number(value), MinRuntime: 600e9, MaxAttempts: 3}
		case "moves":
			s.Moves = &MovePolicy{OnlyAdvise: value == "advise", MinWait: 600e9, MinRuntime: 600e9}
		}
	}
	return "ok"
}

// victimsText is the text of a grant's victims in a script.
func victimsText(g *Grant) string {
	if g.Victims == nil {
		return ""
	}
	ids := make([]string, len(g.Victims))
	for i, id := range g.Victims {
		ids[i] = strconv.FormatUint(id, 10)
	}
	return fmt.Sprintf(", in place of %s: %s", strings.Join(ids, " "), g.EvictionReason)
}

// checkVictims checks the victims of a grant. None may be prod or a victim of another
// grant, and none may have the grant's band except in batch, or by priority.
func checkVictims(t testing.TB, g *Grant, gone map[string]bool) {
	t.Helper()
	for _, id := range g.Victims {
		i := slices.IndexFunc(g.Machine.Claims, func(c MachineClaim) bool { return c.ID == id })
		name := fmt.Sprint(g.Machine.Name, " ", id)
		if i < 0 || gone[name] || g.Units != 1 || g.EvictionReason == "" {
			t.Fatalf("%s goes for %d units of %v, twice %v: %q", name, g.Units, g.Request.Key, gone[name],
				g.EvictionReason)
		}
		gone[name] = true
		c := &g.Machine.Claims[i]
		lowerOwn := c.Submitter == g.Request.Submitter && c.Priority < g.Request.Priority
		if c.Vacating || c.Band.IsProd() || c.Band > g.Request.Band || c.Band == g.Request.Band &&
			c.Band != roost.BatchBand && !lowerOwn {
			t.Fatalf("%s of band %v goes for %v", name, c.Band, g.Request.Band)
		}
	}
}

func (c *scriptCell) numbers(list string) (all []uint64) {
	for _, one := range machineNames(list) {
		all = append(all, uint64(c.number(one)))
	}
	return all
}

// randomTenants makes a pool with little free, and a request of a higher band.
func randomTenants(t testing.TB, rng *rand.Rand) *Snapshot {
	s := &Snapshot{Now: time.Unix(100_000, 0), Shares: map[fairshare.Submitter]SubmitterShare{}}
	for i := range 1 + rng.IntN(3) {
		f, name := randomUnits(rng).EmptyClone(), fmt.Sprintf("m%d", i)
		f.SetReclaim(false)
		plain := rng.IntN(3) == 0
		total := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB}
		free := total
		var claims []classad.Value
		for id := range rng.IntN(7) {
			r := roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(4)) * 1000,
				Memory: roost.Bytes(1+rng.IntN(2)) * roost.GiB}
			if rng.IntN(3) == 0 && !plain {
				if r.GPUs = 1; rng.IntN(2) == 0 {
					r.GPUMemory = roost.Bytes(1+rng.IntN(8)) * roost.GiB
				}
			}
			app := gpu.AppClass(rng.IntN(6) / 5)
			p, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: r, Class: app})
			if !plain && err != nil || plain && !r.FitsIn(free) {
				continue
			}
			ad := classad.New()
			if plain {
				app = gpu.BatchClass
				free = free.Sub(r)
			} else {
				f.TakePlacement(p)
				p.Describe(ad)
			}
			ad.SetInt(roost.AttrClaimID, int64(id+1))
			ad.SetString(roost.AttrOwner, "u")
			ad.SetString(roost.AttrBand, roost.PriorityBand(rng.IntN(5)*3/4).String())
			ad.SetString(roost.AttrAppClass, app.String())
			ad.SetInt(roost.AttrSince, 100_000-int64(rng.IntN(20)))
			ad.SetBool(roost.AttrCheckpointable, rng.IntN(4) == 0)
			ad.SetBool(roost.AttrOnce, rng.IntN(4) == 0)
			if rng.IntN(2) == 0 {
				ad.SetInt(roost.AttrRank, int64(rng.IntN(5)))
			}
			setAmounts(ad, r)
			claims = append(claims, classad.AdOf(ad))
		}
		ad := machineAd(t, name, total, free,
			fmt.Sprintf("Speed = %d; Rank = %s", rng.IntN(4)/3, [2]string{"7 - 7", "TARGET.Worth"}[rng.IntN(2)]))
		if !plain {
			f.Describe(ad)
		}
		ad.SetValue(roost.AttrClaims, classad.ListValue(claims...))
		m := NewMachine(name, 1, 1, ad)
		if m.ClaimsUnknown != nil {
			t.Fatal(m.ClaimsUnknown)
		}
		s.Machines = append(s.Machines, m)
	}
	who, band := fairshare.Submitter{Owner: "boss"}, roost.PriorityBand(1+rng.IntN(3))
	r := roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(8)) * 1000, Memory: roost.GiB,
		GPUs: rng.IntN(4) / 3 * (1 + rng.IntN(2))}
	class, err := NewClass("[Rank = TARGET.Speed; Worth = 2]", who, band, r)
	if err != nil {
		t.Fatal(err)
	}
	s.Requests = []*Request{{Key: RequestKey{"s", 1}, Submitter: who, Band: band, Wanted: 1, Class: class}}
	return s
}

// naiveEviction tries all sets of claims of all machines. It returns the best rank and
// cost at which one unit gets room.
func naiveEviction(s *Snapshot, r *Request) (rank float64, best victimCost, found bool) {
	for _, m := range s.Machines {
		speed, _ := m.Ad.Real("Speed")
		e, _ := m.Ad.Lookup("Rank")
		likes := e.String() == "TARGET.Worth" && r.Band == roost.BatchBand
		for set := 1; set < 1<<len(m.Claims); set++ {
			var price victimCost
			ok, plain := true, m.Free
			var units *gpu.FreeResources
			if m.units != nil {
				units = m.units.Clone()
			}
			for i := range m.Claims {
				if set&(1<<i) == 0 {
					continue
				}
				c := &m.Claims[i]
				ok = ok && c.Band < roost.ProductionBand && (c.Band < r.Band || likes && c.Band == roost.BatchBand &&
					c.Rank < 2 && (!c.NotRerunnable || c.Checkpointable))
				price = price.plus(c, s.Now.Unix())
				if units != nil {
					units.ReturnPlacement(c.Placement)
				} else {
					plain = plain.Add(c.Resources)
				}
			}
			if units != nil {
				_, err := units.PlaceOrExplain(gpu.DeviceRequest{Resources: r.Class.Resources, Class: r.Class.AppClass})
				ok = ok && err == nil
			} else {
				ok = ok && r.Class.Resources.FitsIn(plain)
			}
			if ok && (!found || speed > rank || speed == rank && price.less(best)) {
				rank, best, found = speed, price, true
			}
		}
	}
	return rank, best, found
}

// TestEvictionIsLeast compares the victims of a plan with the best of all choices.
func TestEvictionIsLeast(t *testing.T) {
	evictions, none := 0, 0
	for seed := range uint64(3000) {
		s := randomTenants(t, rand.New(rand.NewPCG(seed, 7)))
		r := s.Requests[0]
		plan := NewMatcher().Plan(s)
		checkPlan(t, s, plan)
		if len(plan.Grants) == 1 && plan.Grants[0].Victims == nil {
			continue // there was room
		}
		rank, best, found := naiveEviction(s, r)
		if !found {
			if none++; len(plan.Grants) > 0 {
				t.Fatalf("seed %d: %s, and nobody can be displaced", seed, grantsText(plan.Grants))
			}
			continue
		}
		if len(plan.Grants) != 1 {
			t.Fatalf("seed %d: nothing was granted, and %+v would do", seed, best)
		}
		g := &plan.Grants[0]
		var price victimCost
		for _, id := range g.Victims {
			i := slices.IndexFunc(g.Machine.Claims, func(c MachineClaim) bool { return c.ID == id })
			price = price.plus(&g.Machine.Claims[i], s.Now.Unix())
		}
		if speed, _ := g.Machine.Ad.Real("Speed"); speed != rank || price != best {
			t.Fatalf("seed %d: %sit costs %+v at rank %v, and the least is %+v at rank %v", seed,
				grantsText(plan.Grants), price, speed, best, rank)
		}
		evictions++
	}
	if evictions < 300 || none < 100 {
		t.Errorf("%d evictions and %d cells without were looked at", evictions, none)
	}
}

func (c *scriptCell) setOverSoftLimit(lines []string) string {
	c.snapshot.Preemption.OverSoftLimit = map[ClaimKey]string{}
	for _, line := range lines {
		words := strings.Fields(line)
		c.snapshot.Preemption.OverSoftLimit[ClaimKey{words[0], uint64(c.number(words[1]))}] = strings.Join(words[2:],
			" ")
	}
	return "ok"
}
