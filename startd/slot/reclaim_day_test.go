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

// dayScenario simulates a day of one machine on the claim table of a startd. Production
// asks for three quarters of it, and its tasks use a random part of that. Batch tasks
// take whatever they are given. The usage resembles figure 11 of the Borg paper: most
// tasks use much less than they asked for, and use memory more, and more steadily, than
// CPU.
type dayScenario struct {
	table *ClaimTable
	rng   *rand.Rand
	now   roost.BootTime
	next  uint64
	tasks map[ClaimID]*scenarioTask

	reclaimedCoreSeconds, totalCoreSeconds float64 // core-seconds of claims in reclaimed room, and of all
	// of memory: the sum over samples of reservation by limit, of production
	reserved   float64
	samples    float64
	begun      int // batch tasks
	evicted    int // of those
	lostWork   float64
	production int // that had to go; never
}

// scenarioTask is what a task does.
type scenarioTask struct {
	id          roost.AttemptID
	ends        roost.BootTime
	began       roost.BootTime
	cpu, memory float64 // of what it asked for, usually
	spikeEnds   roost.BootTime
	production  bool
}

const dayStep = 30 * time.Second

func newDay(t testing.TB, level roost.ReclaimLevel, seed uint64) *dayScenario {
	ad := classad.New()
	ad.SetBool(roost.AttrRequirements, true)
	c := New(TableOptions{
		Units: []gpu.ResourceUnit{{Name: "shared", NUMA: -1, CPU: 32_000, Memory: 128 * roost.GiB}}, Ad: ad, FirstID: 1,
		ExitRetention: time.Hour, Reclaim: level,
	})
	if err := c.Connected(0, 1, "s", 1, 1); err != nil {
		t.Fatal(err)
	}
	return &dayScenario{table: c, rng: rand.New(rand.NewPCG(seed, 11)), tasks: map[ClaimID]*scenarioTask{}}
}

// startTask gets a claim for a task and starts it, if there is room.
func (d *dayScenario) startTask(t testing.TB, band roost.PriorityBand) bool {
	d.next++
	claim, err := d.table.DecideClaim(d.now, ClaimRequest{
		Session: 1, Schedd: "s", Grant: roost.GrantID{Epoch: 1, ID: d.next}, Owner: "ann", Info: ClaimInfo{Band: band},
		TokenValid: true,
		Lease:      1000 * time.Hour,
		Resources:  roost.Resources{CPU: 1000, Memory: 4 * roost.GiB},
	})
	if err != nil {
		return false
	}
	d.table.ClaimCreated(claim.ID)
	task := &scenarioTask{id: roost.AttemptID{Task: roost.JobID{Seq: d.next, Host: "s"}.Task(0), Attempt: 1},
		began: d.now, production: band.IsProd()}
	if err := d.table.Activate(d.now, 1, "s", claim.ID, task.id, AttemptInfo{}); err != nil {
		t.Fatal(err)
	}
	d.table.Started(d.now, claim.ID, task.id)
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

// taskUsage is what a task uses now.
func (d *dayScenario) taskUsage(task *scenarioTask) reclaim.ResourceAmount {
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
	return reclaim.ResourceAmount{CPU: roost.MilliCPU(1000 * cpu * (0.8 + 0.4*d.rng.Float64())),
		Memory: roost.Bytes(float64(4*roost.GiB) * memory)}
}

// endTask ends the task on a claim, and the claim.
func (d *dayScenario) endTask(id ClaimID) {
	task := d.tasks[id]
	delete(d.tasks, id)
	d.table.Ended(d.now, id, task.id)
	d.table.Acknowledged(1, "s", task.id)
	d.table.Release(1, "s", id)
}

func (d *dayScenario) step(t testing.TB) {
	production, use := 0, map[ClaimID]reclaim.ResourceAmount{}
	for _, claim := range d.table.claims.sorted() {
		task := d.tasks[claim.ID]
		if task == nil {
			continue
		}
		if d.now >= task.ends {
			d.endTask(claim.ID)
			continue
		}
		use[claim.ID] = d.taskUsage(task)
		d.totalCoreSeconds += dayStep.Seconds()
		if claim.Placement.Reclaimed {
			d.reclaimedCoreSeconds += dayStep.Seconds()
		}
		if task.production {
			production++
			_, memory := claim.Placement.UsageEstimate()
			d.reserved, d.samples = d.reserved+float64(memory)/float64(claim.Resources.Memory), d.samples+1
		}
	}
	d.table.AddUsageSamples(d.now, use, MemoryPressure{})
	for ; production < 24; production++ {
		d.startTask(t, roost.ProductionBand)
	}
	d.performEffects()
	for d.startTask(t, roost.BatchBand) {
	}
	d.performEffects()
	d.table.invariants().Check()
	d.table.invariants().checkOvercommit()
	d.now += dayStep
}

// performEffects has those go that have to.
func (d *dayScenario) performEffects() {
	effects, _ := d.table.Todo(d.now)
	for _, e := range effects {
		if v, ok := e.(VacateAttempt); ok && d.tasks[v.Claim.ID] != nil && v.Cause == Preempted {
			task := d.tasks[v.Claim.ID]
			d.evicted++
			d.lostWork += (d.now - task.began).Seconds()
			if task.production {
				d.production++
			}
			d.endTask(v.Claim.ID)
		}
	}
	d.table.Todo(d.now)
}

func playDay(t testing.TB, level roost.ReclaimLevel, seed uint64) *dayScenario {
	d := newDay(t, level, seed)
	for d.now < 24*time.Hour {
		d.step(t)
	}
	return d
}

// TestReclaimedDay checks that a bolder level runs more of the work in reclaimed room.
// Without reclamation no work runs there, and production never has to go.
func TestReclaimedDay(t *testing.T) {
	last := -1.0
	for level := roost.ReclaimOff; level <= roost.ReclaimAggressive; level++ {
		d := playDay(t, level, 1)
		part := d.reclaimedCoreSeconds / d.totalCoreSeconds
		t.Logf("%v: %.1f%% of the work in reclaimed room, reservations of production %.0f%% of limits, %d of %d "+
			"batch tasks evicted",
			level, 100*part, 100*d.reserved/d.samples, d.evicted, d.begun)
		if part <= last || level == roost.ReclaimOff && (part > 0 || d.evicted > 0) || d.production > 0 {
			t.Errorf("%v: %+v", level, d)
		}
		last = part
	}
}

// BenchmarkReclaimedDay says what each level gains and costs, over machines that differ
// in their seeds.
func BenchmarkReclaimedDay(b *testing.B) {
	for level := roost.ReclaimBaseline; level <= roost.ReclaimAggressive; level++ {
		b.Run(level.String(), func(b *testing.B) {
			var sum dayScenario
			for seed := range b.N {
				d := playDay(b, level, uint64(seed))
				sum.reclaimedCoreSeconds, sum.totalCoreSeconds, sum.reserved, sum.samples = sum.reclaimedCoreSeconds+
					d.reclaimedCoreSeconds, sum.totalCoreSeconds+d.totalCoreSeconds, sum.reserved+d.reserved,
					sum.samples+d.samples
				sum.evicted, sum.begun, sum.lostWork = sum.evicted+d.evicted, sum.begun+d.begun, sum.lostWork+d.lostWork
			}
			b.ReportMetric(100*sum.reclaimedCoreSeconds/sum.totalCoreSeconds, "%lent")
			b.ReportMetric(100*sum.reserved/sum.samples, "%reserved")
			b.ReportMetric(100*float64(sum.evicted)/float64(sum.begun), "%evicted")
			b.ReportMetric(100*sum.lostWork/sum.totalCoreSeconds, "%lost")
		})
	}
}
