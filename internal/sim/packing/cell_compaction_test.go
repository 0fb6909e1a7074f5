package packing

import (
	"errors"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

func drawnCell(seed int) RandomSource { return rand.New(rand.NewSource(int64(seed) + 1)) }

// TestCompact compares the search with the protocol, one machine at a time. It uses small
// cells, every score and several orders.
func TestCompact(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 1
	}
	differ := 0
	for seed := range seeds {
		c := smallCell(t, 40, 60, rand.New(rand.NewSource(int64(seed))))
		for _, by := range []match.ScorePolicy{match.Hybrid, match.BestFit, match.WorstFit} {
			var fast, exact CellCompaction
			fast = CellCompaction{CellWorkload: c, Score: by}
			if err := fast.GrowToFit(); err != nil {
				t.Fatal(err)
			}
			exact = CellCompaction{CellWorkload: c, Score: by, Copies: fast.Copies, Exact: true}
			if err := exact.GrowToFit(); err != nil {
				t.Fatal(err)
			}
			for order := range 2 {
				got, want := fast.Run(drawnCell(order)), exact.Run(drawnCell(order))
				if got.Machines != want.Machines || got.Waiting != want.Waiting {
					t.Logf("cell %d, order %d, %v: %+v, machine by machine %+v", seed, order, by, got, want)
					differ++
				}
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d times another size was found", differ)
	}
}

// TestCompactFits checks by packing again that a result holds the work, and that one
// machine less does not.
func TestCompactFits(t *testing.T) {
	c := smallCell(t, 40, 70, rand.New(rand.NewSource(5)))
	k := CellCompaction{CellWorkload: c}
	if err := k.GrowToFit(); err != nil {
		t.Fatal(err)
	}
	out := k.Run(drawnCell(1))
	order := make([]int, len(k.machines))
	for i := range order {
		order[i] = i
	}
	drawnCell(1).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for n, fits := range map[int]bool{out.Machines: true, out.Machines - 1: false} {
		some := slices.Clone(order[:n])
		slices.Sort(some)
		s := &match.Snapshot{Requests: c.Requests}
		for _, at := range some {
			s.Machines = append(s.Machines, k.machines[at])
		}
		waiting := 0
		for _, u := range match.NewMatcher().Plan(s).Unplaced {
			waiting += u.Missing
		}
		if (waiting == 0) != fits {
			t.Errorf("on %d machines %d tasks wait", n, waiting)
		}
	}
}

// TestStudy checks that Roost's score needs fewer machines than best fit and worst fit.
// The result must be reproducible, and each arrangement must cost machines.
func TestStudy(t *testing.T) {
	c := smallCell(t, 48, 80, rand.New(rand.NewSource(9)))
	const seeds = 3
	sum := func(l StudyResult) (n int) {
		for _, m := range l.Machines {
			n += m
		}
		return n
	}
	lines := map[match.ScorePolicy]StudyResult{}
	for _, by := range []match.ScorePolicy{match.Hybrid, match.BestFit, match.WorstFit} {
		for range 2 {
			line, err := Study([]*CellWorkload{c}, CellCompaction{Score: by}, seeds, drawnCell)
			if err != nil {
				t.Fatal(err)
			}
			if last, known := lines[by]; known && last.Digest() != line.Digest() {
				t.Errorf("%v: %+v, then %+v", by, last, line)
			}
			lines[by] = line
		}
	}
	t.Log(lines)
	if sum(lines[match.Hybrid]) > sum(lines[match.BestFit]) || sum(lines[match.BestFit]) > sum(lines[match.WorstFit]) {
		t.Errorf("%v: want hybrid to need the fewest, then best fit", lines)
	}
	for _, k := range AllCosts() {
		with, without, err := k.Study(c, match.Hybrid, lines[match.Hybrid], ReservationModel{40, 80}, seeds, drawnCell)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(k, with.Machines, without.Machines)
		// in so small a cell equal parts may fit better by chance
		if divided := k >= DividedIn2 && k <= DividedIn10; sum(with) < sum(without) && !divided {
			t.Errorf("%v: it takes %v machines, and without %v", k, with.Machines, without.Machines)
		}
	}
}

// TestInfeasible checks that work that no number of such machines holds is refused with a
// reason.
func TestInfeasible(t *testing.T) {
	nodes := []TraceNode{{Name: "n", CPU: 8000, Memory: 16 * roost.GiB, GPUs: 2, GPUModel: "T4"}}
	for _, test := range []struct {
		pod  TracePod
		want string
	}{
		{TracePod{CPU: 9000, Memory: roost.GiB}, "no room for 1 of 2 tasks"},
		{TracePod{CPU: 1000, Memory: roost.GiB, GPUs: 1, GPUMilli: 1000, GPUModels: []string{"G2"}},
			"ask for 1 cpu, 1GiB memory, 1 gpu: "},
	} {
		test.pod.Name = "big"
		c, err := NewCell(nodes, []TracePod{{Name: "small", CPU: 1000, Memory: roost.GiB}, test.pod})
		if err != nil {
			t.Fatal(err)
		}
		k := CellCompaction{CellWorkload: c}
		if err := k.GrowToFit(); !errors.Is(err, roost.Exhausted) || !strings.Contains(err.Error(), test.want) ||
			k.Copies > 1 {
			t.Errorf("%d copies: %v, want %s", k.Copies, err, test.want)
		}
	}
}

// TestPicky checks that a picky task may wait if it is one of a thousand. A task that all
// machines could hold may not.
func TestPicky(t *testing.T) {
	c := smallCell(t, 200, 90, rand.New(rand.NewSource(3)))
	total := len(c.Tasks)
	if total < 500 {
		t.Fatalf("%d tasks are too few", total)
	}
	for _, test := range []struct {
		node string
		want bool
	}{{"m000", true}, {"", false}} {
		text := ""
		if test.node != "" {
			text = `[Requirements = TARGET.Name == "` + test.node + `"]`
		}
		who := fairshare.Submitter{Owner: "ann"}
		class, err := match.NewClass(text, who, roost.FreeBand, roost.Resources{CPU: 1000})
		if err != nil {
			t.Fatal(err)
		}
		r := &match.Request{Key: match.RequestKey{Schedd: "x", ID: 1}, Submitter: who, Class: class, Wanted: 1}
		d := c.withWork(append(slices.Clone(c.Requests), r))
		k := CellCompaction{CellWorkload: d}
		if err := k.GrowToFit(); err != nil {
			t.Fatal(err)
		}
		if got := k.acceptsWaiting([]match.UnplacedRequest{{Request: r, Missing: total * MaxPicky / 1000}}); got !=
			test.want {
			t.Errorf("%s: %v", text, got)
		}
		if k.acceptsWaiting([]match.UnplacedRequest{{Request: r, Missing: total*MaxPicky/1000 + 2}}) {
			t.Errorf("%s: too many may wait", text)
		}
	}
}

// TestSoft checks that requirements of more than half of the cell become soft
// constraints.
func TestSoft(t *testing.T) {
	var nodes []TraceNode
	for _, n := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, TraceNode{Name: n, CPU: 8000, Memory: 16 * roost.GiB, GPUs: 2,
			GPUModel: map[bool]string{true: "T4", false: "G2"}[n < "c"]})
	}
	var pods []TracePod
	for i := range 3 {
		pods = append(pods, TracePod{Name: string(rune('p' + i)), CPU: 8000, Memory: 8 * roost.GiB, GPUs: 2,
			GPUMilli: 1000, GPUModels: []string{"T4"}})
	}
	for _, n := range []int{2, 3} { // two are half of the cell, three are more
		c, err := NewCell(nodes, pods[:n])
		if err != nil {
			t.Fatal(err)
		}
		k := CellCompaction{CellWorkload: c}
		if err := k.GrowToFit(); err != nil || k.Copies != 1 {
			t.Fatalf("%d pods: %d copies, %v", n, k.Copies, err)
		}
		hard := 0
		for _, r := range k.softened {
			if r.Class == c.Requests[0].Class {
				hard++
			}
		}
		if (hard == 1) != (n == 2) {
			t.Errorf("%d pods: %d requests have kept their requirements", n, hard)
		}
	}
}

// TestBucket checks the powers of two.
func TestBucket(t *testing.T) {
	for _, test := range [][2]roost.MilliCPU{{0, 0}, {1, 500}, {500, 500}, {501, 1000}, {1000, 1000}, {3000, 4000},
		{4001, 8000}, {96000, 128000}} {
		if got := nextBucket(test[0], 500); got != test[1] {
			t.Errorf("%v is rounded to %v, want %v", test[0], got, test[1])
		}
	}
}

// TestParts checks that the cells of a split together have each task once.
func TestParts(t *testing.T) {
	c := smallCell(t, 8, 100, rand.New(rand.NewSource(2)))
	for name, cells := range map[string][]*CellWorkload{"bands": c.SplitByProd(),
		"users": c.SplitByUser(drawnCell(1), 0), "large users": c.SplitByUser(drawnCell(1), LargeUserPercent)} {
		seen, tasks := map[*match.Request]int{}, 0
		for _, part := range cells {
			for _, r := range part.Requests {
				seen[r]++
			}
			tasks += len(part.Tasks)
		}
		for _, r := range c.Requests {
			if seen[r] != 1 {
				t.Errorf("%s: request %v is in %d cells", name, r.Key, seen[r])
			}
		}
		if len(cells) < 2 || tasks != len(c.Tasks) {
			t.Errorf("%s: %d cells with %d of %d tasks", name, len(cells), tasks, len(c.Tasks))
		}
	}
	all, large := c.SplitByUser(drawnCell(1), 0), c.SplitByUser(drawnCell(1), 2*LargeUserPercent)
	if len(all) <= len(large) {
		t.Errorf("%d cells for all users, %d for the large ones", len(all), len(large))
	}
}

// TestDivide checks that equal parts of each kind of task go to each cell.
func TestDivide(t *testing.T) {
	c := smallCell(t, 8, 100, rand.New(rand.NewSource(2)))
	for _, parts := range []int{1, 2, 5, 10} {
		cells := c.Divide(parts)
		wanted, least, most := map[match.RequestKey]int{}, len(c.Tasks), 0
		for _, part := range cells {
			for _, r := range part.Requests {
				wanted[r.Key] += r.Wanted
			}
			least, most = min(least, len(part.Tasks)), max(most, len(part.Tasks))
		}
		for _, r := range c.Requests {
			if wanted[r.Key] != r.Wanted {
				t.Errorf("%d parts: request %v has %d tasks, want %d", parts, r.Key, wanted[r.Key], r.Wanted)
			}
		}
		if len(cells) != parts || most-least > 1 {
			t.Errorf("%d cells of %d to %d tasks, want %d of about the same size", len(cells), least, most, parts)
		}
	}
}
