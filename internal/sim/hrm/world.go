package hrm

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/fault"
	"github.com/roost-batch/roost/internal/sim/kernel"
)

// begin is when the clocks of the cell begin.
var begin = time.Unix(1_767_225_600, 0)

// patience is how long a run may last beyond what its containers need, before something is wrong.
const patience = time.Hour

// The kinds of events, for the digest.
const (
	submit uint8 = iota
	arrive       // a message
	done         // of what takes time
	durable
	over
	tell
	wake
)

// world is a cell at work.
type world struct {
	Options
	costs    Costs
	k        kernel.Kernel
	rng      *fault.Rand
	leader   *leader
	schedds  []*schedd
	machines []*machine
	jobs     []Job
	left     int // jobs that have not ended
	spent    [steps]Spent
	broken   error
}

func newWorld(o Options, costs Costs) (*world, error) {
	w := &world{Options: o, costs: costs, rng: fault.NewRand(o.Seed), jobs: make([]Job, o.Jobs), left: o.Jobs}
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
	at := w.k.Now()
	for i := range w.jobs {
		if o.Every > 0 && i > 0 {
			at += time.Duration(-math.Log(1-float64(w.rng.Intn(1<<30))/(1<<30)) * float64(o.Every))
		}
		w.at(at, submit, i, func() { w.schedds[i%o.Schedds].submit(i) })
	}
	return w, nil
}

func (w *world) now() time.Time { return begin.Add(w.k.Now()) }

// at has something happen at an instant, and after a while later. Where says at whom, for the digest.
func (w *world) at(at time.Duration, kind uint8, where int, do func()) {
	w.k.Plan(kernel.Event{At: at, Kind: kind, Place: int32(where), With: do})
}

func (w *world) after(d time.Duration, kind uint8, where int, do func()) {
	w.at(w.k.Now()+d, kind, where, do)
}

// takes makes a step, and has what follows happen when it is over.
func (w *world) takes(s Step, where int, do func(), things func() int, then func()) {
	took := w.costs.Of(s, do, things)
	n, spent := things(), &w.spent[s]
	spent.Number++
	spent.Things += n
	spent.Total += took
	spent.Most = max(spent.Most, took)
	w.k.Note(uint64(n))
	w.after(took, done, where, then)
}

// run lets events happen until all jobs have ended.
func (w *world) run() (*Result, error) {
	rounds := time.Duration(w.Jobs*w.Containers/(w.Machines*w.Cores) + 1)
	bound := patience + rounds*w.Longest + 2*time.Duration(w.Jobs)*w.Every
	for w.left > 0 && w.broken == nil {
		e, ok := w.k.Next()
		if !ok || e.At > bound {
			return nil, fmt.Errorf("%w: at %v %d of %d jobs have not ended, and nothing brings them on", roost.Internal, w.k.Now(), w.left, w.Jobs)
		}
		e.With.(func())()
	}
	return &Result{w.jobs, w.spent, w.k.Happened(), w.k.Digest()}, w.broken
}
