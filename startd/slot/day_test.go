package slot

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// day plays a machine for a day on the books that a startd keeps: three quarters are asked for by production, whose tasks use of it what they happen
// to, and batch tasks come for whatever they are given. How much tasks use is made up, but alike what figure 11 of the Borg paper shows: most use much
// less than they asked for, memory more of it and more steadily than processor time.
type day struct {
	c     *Core
	rng   *rand.Rand
	now   Instant
	next  uint64
	tasks map[ClaimID]*dayTask

	lent, all  float64 // core-seconds of claims in reclaimed room, and of all
	reserved   float64 // of memory: the sum over samples of reservation by limit, of production
	samples    float64
	begun      int // batch tasks
	evicted    int // of those
	lostWork   float64
	production int // that had to go; never
}

// dayTask is what a task does.
type dayTask struct {
	id          roost.AttemptID
	ends        Instant
	began       Instant
	cpu, memory float64 // of what it asked for, usually
	spikeEnds   Instant
	production  bool
}

const dayStep = 30 * time.Second

func newDay(t testing.TB, level roost.Reclaim, seed uint64) *day {
	ad := classad.New()
	ad.SetBool(roost.AttrRequirements, true)
	c := New(Options{
		Units: []gpu.Unit{{Name: "shared", NUMA: -1, CPU: 32_000, Memory: 128 * roost.GiB}}, Ad: ad, FirstID: 1, KeepExits: time.Hour, Reclaim: level,
	})
	if err := c.Connected(0, 1, "s", 1, 1); err != nil {
		t.Fatal(err)
	}
	return &day{c: c, rng: rand.New(rand.NewPCG(seed, 11)), tasks: map[ClaimID]*dayTask{}}
}

// begin gets a claim for a task and starts it, if there is room.
func (d *day) begin(t testing.TB, band roost.Band) bool {
	d.next++
	claim, err := d.c.Decide(d.now, ClaimRequest{
		Session: 1, Schedd: "s", Grant: GrantID{1, d.next}, Owner: "ann", About: About{Band: band}, Capable: true, Lease: 1000 * time.Hour,
		Resources: roost.Resources{CPU: 1000, Memory: 4 * roost.GiB},
	})
	if err != nil {
		return false
	}
	d.c.Made(claim.ID)
	task := &dayTask{id: roost.AttemptID{Task: roost.JobID{Seq: d.next, Host: "s"}.Task(0), Attempt: 1}, began: d.now, production: band.Prod()}
	if err := d.c.Activated(d.now, 1, "s", claim.ID, task.id, Terms{}); err != nil {
		t.Fatal(err)
	}
	d.c.Started(d.now, claim.ID, task.id)
	if mean := 8 * time.Hour; task.production {
		task.ends = d.now + time.Duration(d.rng.ExpFloat64()*float64(mean))
		task.cpu, task.memory = 0.05+0.4*d.rng.Float64(), 0.2+0.6*d.rng.Float64()
	} else {
		task.ends = d.now + time.Duration(d.rng.ExpFloat64()*float64(time.Hour))
		task.cpu, task.memory = 0.7+0.3*d.rng.Float64(), 0.3+0.6*d.rng.Float64()
		d.begun++
	}
	d.tasks[claim.ID] = task
	return true
}

// use is what a task uses now.
func (d *day) use(task *dayTask) reclaim.Amount {
	cpu, memory := task.cpu, task.memory
	if task.production {
		cpu *= 1 + 0.5*math.Sin(2*math.Pi*d.now.Hours()/24)
		if d.now >= task.spikeEnds && d.rng.Float64() < dayStep.Hours()/6 { // every six hours, for ten minutes
			task.spikeEnds = d.now + 10*time.Minute
		}
		if d.now < task.spikeEnds {
			cpu, memory = 0.9, math.Min(memory*1.3, 1)
		}
	}
	if ran := d.now - task.began; ran < 5*time.Minute { // it grows into its memory
		memory *= ran.Minutes() / 5
	}
	return reclaim.Amount{CPU: roost.MilliCPU(1000 * cpu * (0.8 + 0.4*d.rng.Float64())), Memory: roost.Bytes(float64(4*roost.GiB) * memory)}
}

// end ends the task on a claim, and the claim.
func (d *day) end(id ClaimID) {
	task := d.tasks[id]
	delete(d.tasks, id)
	d.c.Ended(d.now, id, task.id)
	d.c.Acknowledged(1, "s", task.id)
	d.c.Released(1, "s", id)
}

func (d *day) step(t testing.TB) {
	production, use := 0, map[ClaimID]reclaim.Amount{}
	for _, claim := range d.c.sorted() {
		task := d.tasks[claim.ID]
		if task == nil {
			continue
		}
		if d.now >= task.ends {
			d.end(claim.ID)
			continue
		}
		use[claim.ID] = d.use(task)
		d.all += dayStep.Seconds()
		if claim.Placement.Reclaimed {
			d.lent += dayStep.Seconds()
		}
		if task.production {
			production++
			_, memory := claim.Placement.Reserved()
			d.reserved, d.samples = d.reserved+float64(memory)/float64(claim.Resources.Memory), d.samples+1
		}
	}
	d.c.Sampled(d.now, use, Pressure{})
	for ; production < 24; production++ {
		d.begin(t, roost.Production)
	}
	d.settle()
	for d.begin(t, roost.Batch) {
	}
	d.settle()
	d.c.check()
	d.c.checkRoom()
	d.now += dayStep
}

// settle has those go that have to.
func (d *day) settle() {
	effects, _ := d.c.Todo(d.now)
	for _, e := range effects {
		if v, ok := e.(Vacate); ok && d.tasks[v.Claim.ID] != nil && v.Cause == Preempted {
			task := d.tasks[v.Claim.ID]
			d.evicted++
			d.lostWork += (d.now - task.began).Seconds()
			if task.production {
				d.production++
			}
			d.end(v.Claim.ID)
		}
	}
	d.c.Todo(d.now)
}

func playDay(t testing.TB, level roost.Reclaim, seed uint64) *day {
	d := newDay(t, level, seed)
	for d.now < 24*time.Hour {
		d.step(t)
	}
	return d
}

// TestReclaimedDay: the bolder the level, the more of the work runs in reclaimed room; off, none; and production never has to go.
func TestReclaimedDay(t *testing.T) {
	last := -1.0
	for level := roost.ReclaimOff; level <= roost.ReclaimAggressive; level++ {
		d := playDay(t, level, 1)
		part := d.lent / d.all
		t.Logf("%v: %.1f%% of the work in reclaimed room, reservations of production %.0f%% of limits, %d of %d batch tasks evicted",
			level, 100*part, 100*d.reserved/d.samples, d.evicted, d.begun)
		if part <= last || level == roost.ReclaimOff && (part > 0 || d.evicted > 0) || d.production > 0 {
			t.Errorf("%v: %+v", level, d)
		}
		last = part
	}
}

// BenchmarkReclaimedDay says what each level gains and costs, over machines that differ in their seeds.
func BenchmarkReclaimedDay(b *testing.B) {
	for level := roost.ReclaimBaseline; level <= roost.ReclaimAggressive; level++ {
		b.Run(level.String(), func(b *testing.B) {
			var sum day
			for seed := range b.N {
				d := playDay(b, level, uint64(seed))
				sum.lent, sum.all, sum.reserved, sum.samples = sum.lent+d.lent, sum.all+d.all, sum.reserved+d.reserved, sum.samples+d.samples
				sum.evicted, sum.begun, sum.lostWork = sum.evicted+d.evicted, sum.begun+d.begun, sum.lostWork+d.lostWork
			}
			b.ReportMetric(100*sum.lent/sum.all, "%lent")
			b.ReportMetric(100*sum.reserved/sum.samples, "%reserved")
			b.ReportMetric(100*float64(sum.evicted)/float64(sum.begun), "%evicted")
			b.ReportMetric(100*sum.lostWork/sum.all, "%lost")
		})
	}
}
