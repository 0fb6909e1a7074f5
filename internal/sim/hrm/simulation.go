package hrm

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/sim/faults"
)

// startTime is the wall clock at the start of the simulation.
var startTime = time.Unix(1_767_225_600, 0)

// maxSilence is how much longer than its containers a run may take before it counts as
// failed.
const maxSilence = time.Hour

// The kinds of events, for the digest.
const (
	jobSubmit      uint8 = iota
	messageArrived       // a message arrives
	stepDone             // a step ends
	entryDurable
	containerEnd
	advertise
	leaderWake
)

// simulation is a simulated cell.
type simulation struct {
	SimulationOptions
	costs      StepCosts
	eventLoop  eventloop.Loop
	rng        *faults.SeededRand
	leader     *leaderNode
	schedds    []*scheddNode
	machines   []*machineNode
	jobs       []JobResult
	unfinished int // number of unfinished jobs
	totals     [stepCount]StepTotal
	failure    error
}

func newWorld(o SimulationOptions, costs StepCosts) (*simulation, error) {
	w := &simulation{SimulationOptions: o, costs: costs, rng: faults.NewRand(o.Seed), jobs: make([]JobResult, o.Jobs),
		unfinished: o.Jobs}
	for i := range o.Machines {
		w.machines = append(w.machines, newMachine(w, i))
	}
	for i := range o.Schedds {
		w.schedds = append(w.schedds, newSchedd(w, i))
	}
	var err error
	if w.leader, err = newLeader(w); err != nil {
		return nil, err
	}
	at := w.eventLoop.Now()
	for i := range w.jobs {
		if o.SubmitInterval > 0 && i > 0 {
			at += time.Duration(-math.Log(1-float64(w.rng.Intn(1<<30))/(1<<30)) * float64(o.SubmitInterval))
		}
		w.schedule(at, jobSubmit, i, func() { w.schedds[i%o.Schedds].submit(i) })
	}
	return w, nil
}

func (w *simulation) now() time.Time { return startTime.Add(w.eventLoop.Now()) }

// schedule plans an event. where is the node's number, for the digest.
func (w *simulation) schedule(at time.Duration, kind uint8, where int, do func()) {
	w.eventLoop.Schedule(eventloop.PlannedEvent{At: at, Kind: kind, Place: int32(where), Payload: do})
}

func (w *simulation) scheduleAfter(d time.Duration, kind uint8, where int, do func()) {
	w.schedule(w.eventLoop.Now()+d, kind, where, do)
}

// runStep executes a step, and plans then for its end.
func (w *simulation) runStep(s CostStep, where int, do func(), things func() int, then func()) {
	took := w.costs.Of(s, do, things)
	n, spent := things(), &w.totals[s]
	spent.Count++
	spent.Things += n
	spent.Total += took
	spent.Max = max(spent.Max, took)
	w.eventLoop.AddToDigest(uint64(n))
	w.scheduleAfter(took, stepDone, where, then)
}

// run runs events until all jobs have ended.
func (w *simulation) run() (*RunResult, error) {
	rounds := time.Duration(w.Jobs*w.Containers/(w.Machines*w.Cores) + 1)
	bound := maxSilence + rounds*w.Longest + 2*time.Duration(w.Jobs)*w.SubmitInterval
	for w.unfinished > 0 && w.failure == nil {
		e, ok := w.eventLoop.RunNext()
		if !ok || e.At > bound {
			return nil, fmt.Errorf("%w: at %v %d of %d jobs have not ended, and nothing brings them on", roost.Internal,
				w.eventLoop.Now(), w.unfinished, w.Jobs)
		}
		e.Payload.(func())()
	}
	return &RunResult{w.jobs, w.totals, w.eventLoop.EventCount(), w.eventLoop.Digest()}, w.failure
}
