package pool

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Pool is a simulated pool under way.
type Pool struct {
	cfg    SimulationConfig
	loop   eventloop.Loop
	rand   *eventloop.SplitMix // of everything that takes time
	nodes  []*hostNode
	byName map[string]*hostNode
	net    networkState

	schedds  []*scheddNode
	managers []*managerNode
	machines []*machineNode
	users    []userSubmission // by job

	unfinished                      int // jobs
	tasks, endedTasks, runningTasks int
	usedResources                   roost.Resources
	usedByOwner                     map[string]roost.MilliCPU
	waits                           []time.Duration
	coreSeconds                     float64
	endlessTasks                    int           // of the tasks that live, those that do for ever
	lastChange                      time.Duration // when a task began or ended last
	lastSubmit                      time.Duration // when the last job is submitted
	hasOwners                       bool          // some machine has an owner who comes and goes by himself
	ownerStats                      OwnerStats
}

// What an event is. Those of a daemon are lost when it dies, and wait while it stands
// still; those of a host, when the host does.
const (
	evFunc       uint8 = iota // With is a func()
	evStart                   // of a daemon
	evSubmit                  // Number is the job's
	evAction                  // Number is the act's
	evWake                    // a daemon that stood still, or was busy, goes on
	evTask                    // of a host: With is a starter, or a guard
	evDaemon                  // the kinds from here on are a daemon's
	evDeliver                 // With is a parcel
	evStreamDown              // With is a stream that has broken
	evOpen                    // With is a stream that is to be tried again
	evDisk                    // what was written is safe
	evTick                    // With is an alarm
	evReport                  // of a starter, With is news
)

// New returns a pool whose daemons all start at the instant 0. The error says what of the
// config makes no sense.
func New(cfg SimulationConfig) (*Pool, error) {
	if cfg.Managers < 1 || cfg.Schedds < 1 || len(cfg.Machines) < 1 {
		return nil, fmt.Errorf("%w: a pool of %d central managers, %d schedds and %d machines", roost.Invalid,
			cfg.Managers, cfg.Schedds, len(cfg.Machines))
	}
	if cfg.Times == (TimeModel{}) {
		if cfg.Times = DefaultTimes(); cfg.OnlyOnChange {
			cfg.Times.Lease, cfg.Times.RenewMax = 40*24*time.Hour, 10*24*time.Hour
		}
	}
	if cfg.StartTime.IsZero() {
		cfg.StartTime = time.Unix(wallStart, 0)
	}
	cfg.StartTime = cfg.StartTime.UTC() // hours are the same wherever it is played
	if cfg.Ledger != nil {
		if _, err := ledger.Load(cfg.Ledger); err != nil {
			return nil, err
		}
	}
	cfg.Machines, cfg.Jobs = slices.Clone(cfg.Machines), slices.Clone(cfg.Jobs)
	p := &Pool{cfg: cfg, unfinished: len(cfg.Jobs), usedByOwner: map[string]roost.MilliCPU{},
		rand: eventloop.NewRand(cfg.Seed, 1), byName: map[string]*hostNode{},
		users: make([]userSubmission, len(cfg.Jobs)),
		net:   networkState{links: map[[2]int32]*nodeLink{}}}
	for i := range cfg.Managers {
		p.managers = append(p.managers, newManager(p, i))
	}
	for i := range cfg.Schedds {
		p.schedds = append(p.schedds, newSchedd(p, i))
	}
	for i := range cfg.Machines {
		m, err := newMachine(p, &p.cfg.Machines[i])
		if err != nil {
			return nil, err
		}
		p.machines = append(p.machines, m)
	}
	for _, n := range p.nodes {
		p.loop.Schedule(eventloop.PlannedEvent{Place: n.id, Kind: evStart})
	}
	for i := range cfg.Jobs {
		j := &cfg.Jobs[i]
		if j.Schedd < 0 || j.Schedd >= cfg.Schedds {
			return nil, fmt.Errorf("job %d: %w: it is submitted at schedd %d of %d", i, roost.Invalid, j.Schedd,
				cfg.Schedds)
		}
		if p.lastSubmit = max(p.lastSubmit, j.At); j.At >= 0 {
			p.loop.Schedule(eventloop.PlannedEvent{At: j.At, Place: p.schedds[j.Schedd].id, Kind: evSubmit,
				Number: uint64(i)})
		}
	}
	if err := p.loadInitialJobs(); err != nil {
		return nil, err
	}
	p.scheduleOwners()
	for i, a := range cfg.Actions {
		if a.Job < 0 || a.Job >= len(cfg.Jobs) {
			return nil, fmt.Errorf("act %d: %w: it is about job %d of %d", i, roost.Invalid, a.Job, len(cfg.Jobs))
		}
		p.loop.Schedule(eventloop.PlannedEvent{At: a.At, Place: p.schedds[cfg.Jobs[a.Job].Schedd].id, Kind: evAction,
			Number: uint64(i)})
	}
	return p, nil
}

// Now is how much time has passed.
func (p *Pool) Now() time.Duration { return p.loop.Now() }

// Events counts what has happened, and Digest stands for all of it.
func (p *Pool) Events() uint64 { return p.loop.EventCount() }

// Digest stands for all events so far: two runs with the same digest have been the same.
func (p *Pool) Digest() uint64 { return p.loop.Digest() }

// NextTime is when the next event happens; ok is false when none does.
func (p *Pool) NextTime() (at time.Duration, ok bool) { return p.loop.NextTime() }

// CallAt has f called at an instant, between two events.
func (p *Pool) CallAt(at time.Duration, f func()) {
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Kind: evFunc, Payload: f})
}

// RunNext lets one event happen; it reports false when there is none.
func (p *Pool) RunNext() bool {
	e, ok := p.loop.RunNext()
	if !ok {
		return false
	}
	n := p.nodes[e.Place]
	p.runEvent(n, e)
	if p.cfg.SelfCheck && n.isUp && e.Kind != evFunc {
		n.part.check()
	}
	return true
}

// crashed is what a daemon panics with that dies at a named instant: whatever it was at,
// it does no more of it.
type crashed struct{ *hostNode }

// runEvent lets an event happen to a node, or as much of it as the node lives to see.
func (p *Pool) runEvent(n *hostNode, e eventloop.PlannedEvent) {
	if p.cfg.CrashesAt != nil {
		defer func() {
			switch x := recover().(type) {
			case nil:
			case crashed:
				if x.killAndRestart(); len(x.deferredEvents) > 0 {
					x.wakeAt(x.nextRunnable())
				}
			default:
				panic(x)
			}
		}()
	}
	switch e.Kind {
	case evFunc:
		e.Payload.(func())()
	case evStart:
		n.start()
	case evSubmit:
		p.submitJob(int(e.Number))
	case evAction:
		p.performAction(int(e.Number))
	case evWake:
		n.runDeferred(e.Number)
	case evTask:
		n.runHostEvent(e)
	default:
		n.runDaemonEvent(e)
	}
}

// RunUntil lets everything happen until an instant, or until all jobs are over and
// nothing is done to the pool any more, whichever comes first.
func (p *Pool) RunUntil(until time.Duration) {
	for at, ok := p.loop.NextTime(); ok && at <= until; at, ok = p.loop.NextTime() {
		p.RunNext()
	}
	p.loop.AdvanceTo(until)
}

// RunToEnd runs until every task of every job has ended, but no longer than until an
// instant; it reports whether all have.
func (p *Pool) RunToEnd(until time.Duration) bool {
	for at, ok := p.loop.NextTime(); ok && at <= until && !p.AllEnded(); at, ok = p.loop.NextTime() {
		p.RunNext()
	}
	return p.AllEnded()
}

// Nodes are the names of all nodes, in order: managers, schedds, machines.
func (p *Pool) Nodes() (managers, schedds, machines []string) {
	for _, m := range p.managers {
		managers = append(managers, m.name)
	}
	for _, s := range p.schedds {
		schedds = append(schedds, s.name)
	}
	for _, m := range p.machines {
		machines = append(machines, m.name)
	}
	return managers, schedds, machines
}

// observe tells the observer.
func (p *Pool) observe(s audit.Event) {
	if p.cfg.Observe != nil {
		s.At = p.loop.Now()
		p.cfg.Observe(s)
	}
}

// passFailpoint passes a named instant of a daemon, which may die there.
func (p *Pool) passFailpoint(n *hostNode, name string) bool {
	if p.cfg.CrashesAt != nil && p.cfg.CrashesAt(n.name, name) {
		panic(crashed{n})
	}
	return false
}

// sortedKeys are the keys of a map in order.
func sortedKeys[K ~uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
