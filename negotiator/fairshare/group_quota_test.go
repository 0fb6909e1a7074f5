package fairshare

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDivide compares divisions with results worked out by hand from HTCondor's formulae.
// Groups are written NAME:QUOTA:REQUESTED, with a % after a dynamic quota, and a + if the
// group takes surplus. The result is QUOTA:ALLOCATED for each, with the root's last.
func TestDivide(t *testing.T) {
	tests := []struct {
		name       string
		pool, root float64
		over       bool
		groups     string
		want       string
	}{
		{"no groups", 100, 70, false, "", "100:70"},
		{"what one leaves is lost on who takes no surplus", 100, 0, false, "p:60:100 c:40:10", "60:60 40:10 0:0"},
		{"and not on who does", 100, 0, false, "p+:60:100 c:40:10", "60:90 40:10 0:0"},
		{"the root takes what the groups leave", 100, 50, false, "p:60:20", "60:20 40:50"},
		{"parts of the pool", 100, 100, false, "p:50%:100 c:30%:100", "50:50 30:30 20:20"},
		{"parts of what static groups leave", 100, 0, false, "p:20:100 c:50%:100", "20:20 40:40 40:0"},
		{"parts of more than the whole are cut", 100, 100, false, "p:80%:100 c:120%:100", "40:40 60:60 0:0"},
		{"static quotas of more than there is are cut alike", 60, 0, false, "p:80:100 c:40:100", "40:40 20:20 0:0"},
		{"unless groups may be oversubscribed", 60, 0, true, "p:80:100 c:40:100", "80:80 40:40 0:0"},
		{"a tree", 100, 0, false, "p:60:100 p.o:50%:100 p.l:25%:100", "15:15 30:30 15:15 40:0"},
		{"with oversubscription a quota counts for the parent and the child", 100, 0, true, "p:60:100 p.o:50%:10",
			"60:80 30:10 40:0"},
		{"the parent of a name that is not known is the next above", 100, 0, false, "p:60:100 p.x.o:50%:100",
			"30:30 30:30 40:0"},
		{"surplus goes by quota", 100, 0, false, "a+:10:100 b+:30:100 c:40:0", "10:25 30:75 40:0 20:0"},
		{"who has enough leaves the rest to the others", 100, 0, false, "a+:10:100 b+:30:40 c:40:0",
			"10:60 30:40 40:0 20:0"},
		{"who has no quota comes after those who have", 100, 0, false, "a+:10:30 b+:0:100 c:90:0",
			"10:30 0:70 90:0 0:0"},
		{"and alike", 100, 0, false, "a+:0:100 b+:0:100 c:100:0", "0:50 0:50 100:0 0:0"},
		{"surplus stays below who takes none", 100, 0, false, "p:60:0 p.o+:50%:100 c+:40:100", "30:0 30:60 40:40 0:0"},
		{"and flows through who does", 100, 0, false, "p+:60:0 p.o+:50%:100 c:40:0", "30:0 30:100 40:0 0:0"},
		{"but not past who takes none", 100, 0, false, "p:60:0 p.o+:50%:100 c:40:0", "30:0 30:60 40:0 0:0"},
		{"what makes no sense is nothing", 100, -1, false, "p:-60:100 c:40:-10", "0:0 40:0 60:0"},
	}
	for _, test := range tests {
		var groups []AccountingGroup
		for _, text := range strings.Fields(test.groups) {
			var g AccountingGroup
			part := strings.Split(text, ":")
			g.Name, g.AcceptsSurplus = strings.CutSuffix(part[0], "+")
			quota, dynamic := strings.CutSuffix(part[1], "%")
			g.Dynamic = dynamic
			if fmt.Sscan(quota, &g.Quota); dynamic {
				g.Quota /= 100
			}
			fmt.Sscan(part[2], &g.Requested)
			groups = append(groups, g)
		}
		var got []string
		for _, a := range DivideQuotas(groups, test.pool, test.root, test.over) {
			got = append(got, fmt.Sprintf("%.4g:%.4g", a.Quota, a.Allocated))
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestDivideBounds checks random trees. No group gets more than it requests, or less than
// its own quota permits. No more is given than there is, and nothing is left while a
// group that may have it wants more.
func TestDivideBounds(t *testing.T) {
	names := []string{"a", "a.x", "a.y", "a.x.p", "b", "b.z", "c"}
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		pool, root := float64(rng.IntN(200)), float64(rng.IntN(60))
		var groups []AccountingGroup
		greedy := rng.IntN(2) == 0
		for _, name := range names {
			if rng.IntN(3) == 0 {
				continue
			}
			g := AccountingGroup{Name: name, Quota: float64(rng.IntN(50)), AcceptsSurplus: greedy || rng.IntN(2) == 0,
				Requested: float64(rng.IntN(80))}
			if rng.IntN(2) == 0 {
				g.Dynamic, g.Quota = true, g.Quota/50
			}
			groups = append(groups, g)
		}
		sum, requested := 0.0, root
		all := DivideQuotas(groups, pool, root, false)
		for i, a := range all {
			wants := root
			if i < len(groups) {
				wants = groups[i].Requested
				requested += wants
			}
			sum += a.Allocated
			if a.Allocated > wants+1e-6 || a.Allocated < min(wants, a.Quota)-1e-6 {
				t.Fatalf("seed %d: %v of %v requested: %+v", seed, a, wants, groups)
			}
		}
		if sum > pool+1e-6 || greedy && sum < min(pool, requested)-1e-5 {
			t.Fatalf("seed %d: %v of %v handed out, %v requested: %+v", seed, sum, pool, requested, groups)
		}
	}
}

func TestKnown(t *testing.T) {
	sorted := []string{"chem", "physics", "physics.optics"}
	for name, want := range map[string]string{
		"": "", "chem": "chem", "chem.x.y": "chem", "physics.optics.a": "physics.optics", "physics.optic": "physics",
		"phys": "", "x.physics": "",
	} {
		if got := NearestGroup(sorted, name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
