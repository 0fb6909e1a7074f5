package match

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestMixed checks plans of random cells with mixed gangs. No gang may be placed in part
// or get more than there is, and a scattered gang must not have two units on one machine.
// A matcher with a history decides like a new one.
func TestMixed(t *testing.T) {
	placed := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := randomCell(t, rng)
		s.Now, s.Groups = time.Unix(1000, 0), nil
		s.Backfill = BackfillSettings{Mode: BackfillMode(rng.IntN(3)), Depth: 3, MaxWait: time.Second}
		for i, r := range s.Requests {
			r.Walltime = time.Duration(rng.IntN(3)) * 100 * time.Second
			if i%2 == 0 && r.Class.AppClass == 0 {
				makeMixedGang(s, r, rng)
			}
		}
		matcher := NewMatcher()
		for range 3 {
			plan := matcher.Plan(s)
			checkPlan(t, s, plan)
			placed += checkMixed(t, seed, s, plan)
			if got, want := grantsText(plan.Grants),
				grantsText(NewMatcher().Plan(newMatcherCopy(s)).Grants); got != want {
				t.Fatalf("seed %d: a matcher that remembers plans\n%sand one that does not\n%s", seed, got, want)
			}
		}
	}
	if placed < 100 {
		t.Errorf("%d mixed gangs were placed: too few to hold anything against", placed)
	}
}

// makeMixedGang turns a request into the leader of a gang whose other parts ask for other
// amounts.
func makeMixedGang(s *Snapshot, r *Request, rng *rand.Rand) {
	scatter := rng.IntN(2) == 0
	own := 1 + rng.IntN(2)
	r.Wanted, r.NoQueue, r.Class.Scatter = own, 0, scatter
	if rng.IntN(3) == 0 {
		r.Class.PlacementSetAttr = "Rack"
	}
	for k := range 1 + rng.IntN(2) {
		part, class := *r, *r.Class
		class.Resources = roost.Resources{CPU: 1000 << rng.IntN(3), Memory: roost.GiB << rng.IntN(2)}
		class.minimumSums, class.compiledFor = class.Resources, nil
		part.Key, part.Class, part.Wanted, part.Parts = RequestKey{"s", uint64(1000 + 10*int(r.Key.ID) + k)}, &class,
			1+rng.IntN(2), nil
		r.Parts = append(r.Parts, &part)
	}
	for _, part := range r.Parts {
		r.Wanted += part.Wanted
	}
	r.Gang = r.Wanted
	for _, part := range r.Parts {
		part.Gang = r.Gang
	}
}

func checkMixed(t *testing.T, seed uint64, s *Snapshot, plan Plan) (placed int) {
	t.Helper()
	units := map[*Request]int{}
	for i, g := range plan.Grants {
		units[g.Request] += g.Units
		for _, o := range plan.Grants[:i] {
			if g.Gang != 0 && g.Gang == o.Gang && g.Machine == o.Machine && g.Request.Class.Scatter {
				t.Fatalf("seed %d: gang %d has two units on %s", seed, g.Gang, g.Machine.Name)
			}
			if g.Machine == o.Machine && (g.Request.Class.Exclusive || o.Request.Class.Exclusive) {
				t.Fatalf("seed %d: %v and %v share %s, which one of them has alone", seed, g.Request.Key, o.Request.Key,
					g.Machine.Name)
			}
			if attr := g.Request.Class.PlacementSetAttr; attr != "" && g.Gang != 0 && g.Gang == o.Gang &&
				g.Machine.Ad.Eval(attr, nil).String() != o.Machine.Ad.Eval(attr, nil).String() {
				t.Fatalf("seed %d: gang %d is in two racks, on %s and %s", seed, g.Gang, g.Machine.Name, o.Machine.Name)
			}
		}
	}
	for _, r := range s.Requests {
		if len(r.Parts) == 0 {
			continue
		}
		own := r.Gang
		for _, part := range r.Parts {
			own -= part.Wanted
		}
		for _, part := range r.Parts {
			if units[part]*own != units[r]*part.Wanted {
				t.Fatalf("seed %d: %v has %d of its own %d units, and %d of the %d of %v", seed, r.Key, units[r], own,
					units[part], part.Wanted, part.Key)
			}
		}
		if units[r] > 0 {
			placed++
		}
	}
	return placed
}

// TestMixedPacks compares how often a mixed gang is placed with a search of all
// placements. The two orders of placeParts must find nearly all of them.
func TestMixedPacks(t *testing.T) {
	possible, found := 0, 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := &Snapshot{Now: time.Unix(1000, 0), Shares: map[fairshare.Submitter]SubmitterShare{}}
		var free []int
		for i := range 2 + rng.IntN(3) {
			n := 1 + rng.IntN(6)
			total := roost.Resources{CPU: roost.MilliCPU(n) * 1000, Memory: 64 * roost.GiB}
			name := string(rune('a' + i))
			s.Machines, free = append(s.Machines,
				NewMachine(name, 1, 1, machineAd(t, name, total, total, `Arch = "X86_64"`))), append(free, n)
		}
		class, err := NewClass("[]", fairshare.Submitter{Owner: "ann"}, roost.BatchBand,
			roost.Resources{CPU: 1000, Memory: roost.GiB})
		if err != nil {
			t.Fatal(err)
		}
		lead := &Request{Key: RequestKey{"s", 1}, Submitter: fairshare.Submitter{Owner: "ann"}, Band: roost.BatchBand,
			Class: class}
		makeMixedGang(s, lead, rng)
		s.Requests = []*Request{lead}
		want := []int{}
		own := lead.Gang
		for _, part := range lead.Parts {
			for range part.Wanted {
				want = append(want, int(part.Class.Resources.CPU/1000))
			}
			own -= part.Wanted
		}
		for range own {
			want = append(want, 1)
		}
		got := len(NewMatcher().Plan(s).Grants) > 0
		could := gangCanFit(free, make([]bool, len(free)), want, class.Scatter)
		if got && !could {
			t.Fatalf("seed %d: %v is placed on %v", seed, want, free)
		}
		if could {
			possible++
			if got {
				found++
			}
		}
	}
	t.Logf("%d of %d gangs that can be placed are", found, possible)
	if found*100 < possible*99 {
		t.Errorf("only %d of %d gangs that can be placed are", found, possible)
	}
}

// gangCanFit reports whether there is any way to place all units.
func gangCanFit(free []int, used []bool, want []int, scatter bool) bool {
	if len(want) == 0 {
		return true
	}
	return slices.ContainsFunc(sequenceOf(len(free)), func(i int) bool {
		if free[i] < want[0] || scatter && used[i] {
			return false
		}
		was := used[i]
		free[i], used[i] = free[i]-want[0], true
		ok := gangCanFit(free, used, want[1:], scatter)
		free[i], used[i] = free[i]+want[0], was
		return ok
	})
}

func sequenceOf(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
