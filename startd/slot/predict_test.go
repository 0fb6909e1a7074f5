package slot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// checkNoIdleFit complains when somebody waits for what is free.
func checkNoIdleFit(t *testing.T, c *ClaimTable) {
	t.Helper()
	for unit := range c.queues {
		q := &c.queues[unit]
		next := q.next()
		if next == nil || c.opt.Queue.RunLimit > 0 && q.running >= c.opt.Queue.RunLimit {
			continue
		}
		f := c.free.Clone()
		f.SetQueue(unit, gpu.UnitQueue{})
		var p gpu.Placement
		if f.FindPlacement(next.request(), unit, &p) {
			t.Fatalf("%v waits for %v, and %v is free", next, next.Resources, c.free.UnitFree(unit, gpu.BatchClass))
		}
	}
}

// paperTask is a task in the words of the paper. Its res is what it takes of an RU, d is
// how long it runs, and e is how long it has run.
type paperTask struct {
	res, d, e, time int
	waits           bool
}

// simulateRun is the paper's function, line by line, with S6 read as "from when the ended
// task ends". In turn adds the rule of our queue: none goes before one that came earlier.
func simulateRun(queue, waitTasks []*paperTask, key, ru int, inTurn bool) int {
	if len(queue) == 0 { // S14
		return math.MaxInt
	}
	task := slices.MinFunc(queue, func(a, b *paperTask) int { return a.time - b.time })          // S1
	queue = slices.DeleteFunc(slices.Clone(queue), func(t *paperTask) bool { return t == task }) // S2
	ru += task.res                                                                               // S3
	blocked := false
	for _, t := range waitTasks { // S4
		if t.waits && t.res <= ru && !blocked { // S5
			t.time = t.d + task.time // S6
			ru -= t.res              // S7
			queue = append(queue, t) // S8
			t.waits = false
		}
		blocked = inTurn && (blocked || t.waits)
	}
	if key <= ru && !blocked { // S11
		return task.time
	}
	return simulateRun(queue, waitTasks, key, ru, inTurn) // S17
}

// algorithm1 is the paper's, for one RU.
func algorithm1(free int, running, waiting []*paperTask, key int, inTurn bool) int {
	if free >= key && len(waiting) == 0 { // S3
		return 0
	}
	for _, t := range running { // S19
		t.time = t.d - t.e // S20
	}
	return simulateRun(running, waiting, key, free, inTurn)
}

// TestPredictWait holds the prediction against the paper's pseudo code. Where all tasks
// are of one size, as it stands there; in general, with our rule that none goes before
// another.
func TestPredictWait(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		const cores = 8
		alike := seed%2 == 0
		size := 1 + r.IntN(4)
		pick := func() int {
			if alike {
				return size
			}
			return 1 + r.IntN(6)
		}
		ask := func(n int) gpu.DeviceRequest {
			return gpu.DeviceRequest{Resources: roost.Resources{CPU: roost.MilliCPU(n) * 1000}}
		}
		f := gpu.NewFree([]gpu.ResourceUnit{{Name: "u", CPU: cores * 1000, NUMA: -1}}, 0)
		var ranPaper, waitPaper []*paperTask
		var running []RunningTask
		var waiting []QueuedTask
		left := cores
		for n := pick(); n <= left; n = pick() {
			d := 1 + r.IntN(50)
			c := &paperTask{res: n, d: d, e: r.IntN(d)}
			p, err := f.PlaceOrExplain(ask(n))
			if err != nil {
				t.Fatal(err)
			}
			f.TakePlacement(p)
			left -= n
			ranPaper, running = append(ranPaper, c),
				append(running, RunningTask{p, time.Duration(c.d-c.e) * time.Second})
		}
		for i := range r.IntN(6) {
			n := pick()
			if i == 0 && n <= left {
				n = left + 1 // or it would run
				if alike {
					break
				}
			}
			d := 1 + r.IntN(50)
			waitPaper, waiting = append(waitPaper, &paperTask{res: n, d: d, waits: true}),
				append(waiting, QueuedTask{ask(n), time.Duration(d) * time.Second})
		}
		key := pick()
		wait, ok := PredictWait(f, 0, 0, running, waiting, ask(key))
		got := math.MaxInt
		if ok {
			got = int(wait / time.Second)
		}
		if want := algorithm1(left, ranPaper, waitPaper, key, !alike); got != want {
			t.Fatalf("seed %d: %d cores wait %d s, and by the paper %d s", seed, key, got, want)
		}
	}
}

// TestQueueLength holds the automatic length against b >= r·μ·τ, from which r+b >= r·μ·τ
// follows (HRM §3.4.2).
func TestQueueLength(t *testing.T) {
	for _, c := range []struct {
		run, gap time.Duration
		r, want  int
	}{
		{1000 * time.Second, time.Second, 4, 0},
		{10 * time.Second, time.Second, 4, 1},
		{time.Second, 5 * time.Second, 4, 20},
		{2 * time.Second, 3 * time.Second, 3, 5},
		{time.Millisecond, time.Minute, 4, maxQueue},
	} {
		core := newTestTable(t, QueueOptions{Auto: true})
		core.runtimes.addRun(taskKind{}, c.run)
		core.runtimes.gaps.add(c.gap)
		core.queues[0].running = c.r
		if got := core.nodeQueues().queueCapacity(0); got != c.want {
			t.Errorf("r = %d, 1/μ = %v, τ = %v: b = %d, want %d", c.r, c.run, c.gap, got, c.want)
		}
	}
}

// TestUsualTimesAreForgotten shows that the memory for run times is bounded.
func TestUsualTimesAreForgotten(t *testing.T) {
	m := newRuntimeHistory()
	for i := range 3 * maxKinds {
		m.addRun(taskKind{owner: fmt.Sprint(i)}, time.Second)
	}
	if len(m.kinds) != maxKinds || len(m.order) != maxKinds {
		t.Errorf("%d kinds are remembered, want %d", len(m.kinds), maxKinds)
	}
}
