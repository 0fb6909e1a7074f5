package fairshare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

var (
	begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ann   = Submitter{Owner: "ann"}
	bob   = Submitter{Owner: "bob", Group: "chem"}
)

func almostEqual(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestDecay(t *testing.T) {
	tests := []struct {
		name  string
		cores float64
		hold  time.Duration
		rest  time.Duration
		want  float64
	}{
		{"nothing", 0, 0, time.Hour, 0.5},
		{"HTCondor's example: 100 cores for two half-lives", 100, 48 * time.Hour, 0, 75},
		{"and one half-life later", 100, 48 * time.Hour, 24 * time.Hour, 37.5},
		{"long past", 100, 48 * time.Hour, 1000 * time.Hour, 0.5},
		{"not negative", -100, 48 * time.Hour, 0, 0.5},
		{"not a number", math.NaN(), 48 * time.Hour, 0, 0.5},
		{"not infinite", math.Inf(1), 48 * time.Hour, 0, 0.5},
	}
	for _, test := range tests {
		b := NewAccountant(HalfLife)
		b.SetUsage(begin, ann, test.cores)
		b.SetUsage(begin.Add(test.hold), ann, 0)
		if got := b.RealPriority(begin.Add(test.hold+test.rest), ann); !almostEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
		b.mustBeValid()
	}
}

// TestReadingChangesNothing checks that neither reads nor time that runs backwards change
// anything.
func TestReadingChangesNothing(t *testing.T) {
	often, seldom := NewAccountant(HalfLife), NewAccountant(HalfLife)
	rng := rand.New(rand.NewPCG(1, 1))
	now := begin
	for range 1000 {
		now = now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
		cores := rng.Float64() * 50
		often.SetUsage(now, bob, cores)
		seldom.SetUsage(now, bob, cores)
		for range rng.IntN(5) {
			often.RealPriority(now.Add(-time.Minute), bob)
			now = now.Add(time.Duration(rng.Int64N(int64(time.Minute))))
			often.CoreSeconds(now, bob)
		}
		often.mustBeValid()
	}
	if a, b := often.RealPriority(now, bob), seldom.RealPriority(now, bob); !almostEqual(a, b) {
		t.Errorf("looked at often %v, seldom %v", a, b)
	}
	if a, b := often.CoreSeconds(now, bob), seldom.CoreSeconds(now, bob); !almostEqual(a, b) {
		t.Errorf("used: looked at often %v, seldom %v", a, b)
	}
}

func TestFactor(t *testing.T) {
	b := NewAccountant(HalfLife)
	if got := b.EffectivePriority(begin, ann); got != 500 {
		t.Errorf("a newcomer has %v", got)
	}
	b.SetFactor(begin, ann, 10)
	if got := b.EffectivePriority(begin, ann); got != 5 {
		t.Errorf("with factor 10: %v", got)
	}
	b.SetFactor(begin, ann, -1)
	if got := b.EffectivePriority(begin, ann); got != 500 {
		t.Errorf("with a factor that makes no sense: %v", got)
	}
}

func TestWeight(t *testing.T) {
	total := roost.Resources{CPU: 64_000, Memory: 128 * roost.GiB, GPUs: 4}
	tests := []struct {
		held, total roost.Resources
		want        float64
	}{
		{roost.Resources{CPU: 2000}, total, 2},
		{roost.Resources{CPU: 1000, Memory: 64 * roost.GiB}, total, 32},
		{roost.Resources{CPU: 1000, GPUs: 1}, total, 16},
		{roost.Resources{CPU: 3000, GPUs: 1}, roost.Resources{}, 3},
		{roost.Resources{CPU: -3000}, total, 0},
	}
	for _, test := range tests {
		if got := CoresWorth(test.held, test.total); got != test.want {
			t.Errorf("%v of %v: got %v, want %v", test.held, test.total, got, test.want)
		}
	}
}

func TestSave(t *testing.T) {
	b := NewAccountant(HalfLife)
	b.SetUsage(begin, ann, 8)
	b.SetUsage(begin, bob, 4)
	b.SetFactor(begin, bob, 7)
	later := begin.Add(30 * time.Hour)
	text, err := b.Save(later)
	if err != nil {
		t.Fatal(err)
	}
	c := NewAccountant(HalfLife)
	if err := c.Load(text); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Submitter{ann, bob} {
		if got, want := c.EffectivePriority(later, s), b.EffectivePriority(later, s); !almostEqual(got, want) {
			t.Errorf("%v: priority %v, was %v", s, got, want)
		}
		if got, want := c.CoreSeconds(later, s), b.CoreSeconds(later, s); !almostEqual(got, want) || want == 0 {
			t.Errorf("%v: used %v, was %v", s, got, want)
		}
	}
	for _, bad := range []string{"", "{}", "null", `{"version":2}`,
		`{"version":1,"accounts":[{"owner":"x","priority":-1}]}`,
		`{"version":1,"accounts":[{"owner":"x","core_seconds":1e999}]}`} {
		if err := NewAccountant(0).Load([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// takeAllTurns grants tasks of one core by turns until nothing is left, and returns what
// each claimant got.
func takeAllTurns(claimants []WaitingSubmitter, wants []int, free int) []int {
	got := make([]int, len(claimants))
	turns := NewTurnQueue(claimants)
	for free > 0 {
		i, slice, ok := turns.Next(float64(free))
		if !ok {
			return got
		}
		took := 0
		for c := claimants[i]; free > 0 && got[i] < wants[i] && (took == 0 || float64(took) < slice); {
			if c.Ceiling > 0 && c.Usage+float64(got[i])+1 > c.Ceiling {
				break
			}
			took, free = took+1, free-1
			got[i]++
		}
		turns.AddTaken(i, float64(took))
		if took == 0 || got[i] == wants[i] {
			turns.RemoveClaimant(i)
		}
	}
	return got
}

func TestTurnQueue(t *testing.T) {
	const plenty = 1 << 30
	c := func(owner string, effective, held float64) WaitingSubmitter {
		return WaitingSubmitter{Submitter: Submitter{Owner: owner}, EffectivePriority: effective, Usage: held}
	}
	tests := []struct {
		name      string
		claimants []WaitingSubmitter
		wants     []int
		free      int
		want      []int
	}{
		{"one alone takes all", []WaitingSubmitter{c("a", 500, 0)}, []int{plenty}, 10, []int{10}},
		{"equal halves", []WaitingSubmitter{c("a", 500, 0), c("b", 500, 0)}, []int{plenty, plenty}, 1000,
			[]int{500, 500}},
		{"the odd one goes to the first name", []WaitingSubmitter{c("b", 500, 0), c("a", 500, 0)},
			[]int{plenty, plenty}, 3, []int{1, 2}},
		{"three to one", []WaitingSubmitter{c("a", 500, 0), c("b", 1500, 0)}, []int{plenty, plenty}, 1000,
			[]int{750, 250}},
		{"what is held counts", []WaitingSubmitter{c("a", 500, 600), c("b", 500, 0)}, []int{plenty, plenty}, 1000,
			[]int{200, 800}},
		{"who holds too much gets nothing", []WaitingSubmitter{c("a", 500, 5000), c("b", 500, 0)},
			[]int{plenty, plenty}, 1000, []int{0, 1000}},
		{"what one does not want the others share", []WaitingSubmitter{c("a", 500, 0), c("b", 500, 0), c("c", 500, 0)},
			[]int{10, plenty, plenty}, 1000, []int{10, 495, 495}},
		{"a floor first", []WaitingSubmitter{c("a", 500, 0), {Submitter: Submitter{Owner: "b"}, EffectivePriority: 1e10,
			Floor: 7}}, []int{plenty, plenty}, 10, []int{3, 7}},
		{"floors in proportion", []WaitingSubmitter{{Submitter: Submitter{Owner: "a"}, EffectivePriority: 500,
			Floor: 20}, {Submitter: Submitter{Owner: "b"}, EffectivePriority: 500, Floor: 40}},
			[]int{plenty, plenty}, 30, []int{10, 20}},
		{"what is held counts for the floor", []WaitingSubmitter{c("a", 500, 0), {Submitter: Submitter{Owner: "b"},
			EffectivePriority: 1e10, Floor: 7, Usage: 5}}, []int{plenty, plenty}, 10, []int{8, 2}},
		{"no more than the ceiling", []WaitingSubmitter{c("a", 5e6, 0), {Submitter: Submitter{Owner: "b"},
			EffectivePriority: 500, Ceiling: 12, Usage: 2}}, []int{plenty, plenty}, 100, []int{90, 10}},
		{"alone neither", []WaitingSubmitter{{Submitter: Submitter{Owner: "b"}, EffectivePriority: 500, Ceiling: 12}},
			[]int{plenty}, 100, []int{12}},
		{"a priority that makes no sense is the least", []WaitingSubmitter{c("a", math.NaN(), 0), c("b", 0, 0)},
			[]int{plenty, plenty}, 10, []int{5, 5}},
	}
	for _, test := range tests {
		if got := takeAllTurns(test.claimants, test.wants, test.free); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// TestTurnsProportional checks random claimants that all want more than there is. All
// that got something must end at one level, up to one task.
func TestTurnsProportional(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var claimants []WaitingSubmitter
		var wants []int
		for i := range 2 + rng.IntN(6) {
			claimants = append(claimants, WaitingSubmitter{Submitter: Submitter{Owner: fmt.Sprint(i)},
				EffectivePriority: 500 * (1 + 4*rng.Float64()), Usage: 200 * rng.Float64()})
			wants = append(wants, 1<<30)
		}
		free := 1 + rng.IntN(2000)
		got, sum := takeAllTurns(claimants, wants, free), 0
		low, high := math.Inf(1), 0.0
		for i, c := range claimants {
			sum += got[i]
			low = min(low, (c.Usage+float64(got[i])+1)*c.EffectivePriority)
			if got[i] > 0 {
				high = max(high, (c.Usage+float64(got[i])-1)*c.EffectivePriority)
			}
		}
		if sum != free || high > low+1e-6 {
			t.Fatalf("seed %d: %d of %d handed out, levels from %v to %v", seed, sum, free, low, high)
		}
	}
}
