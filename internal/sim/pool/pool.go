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

// Pool is a running simulation of a pool.
type Pool struct {
	cfg    SimulationConfig
	loop   eventloop.Loop
	rand   *eventloop.SplitMix // draws all delays
	nodes  []*hostNode
	byName map[string]*hostNode
	net    networkState

	schedds  []*scheddNode
	managers []*managerNode
	machines []*machineNode
	cell     *cellQueue       // nil: the cell has no queue
	users    []userSubmission // by job

	unfinished                      int // number of unfinished jobs
	tasks, endedTasks, runningTasks int
	usedResources                   roost.Resources
	usedByOwner                     map[string]roost.MilliCPU
	lastCommand                     map[string]int // number of the last command of an administrator, by machine
	waits                           []time.Duration
	coreSeconds                     float64
	endlessTasks                    int           // running tasks that never end
	lastChange                      time.Duration // when a task last began or ended
	lastSubmit                      time.Duration // when users and administrators do something last
	hasServices                     bool          // some job is a service
	hasOwners                       bool          // some machine has an owner who comes and goes
	ownerStats                      OwnerStats
}

// Kinds of events. Those of a daemon are lost when it dies and wait while it is stopped;
// those of a host do so when the host reboots or is suspended.
const (
	evFunc       uint8 = iota // Payload is a func()
	evStart                   // start of a daemon
	evSubmit                  // Number is that of the job
	evAction                  // Number is that of the action
	evWake                    // a daemon that was stopped or busy resumes
	evTask                    // of a host: Payload is a starter or a guard
	evDaemon                  // from here on the kinds are a daemon's
	evDeliver                 // Payload is a packet
	evStreamDown              // Payload is a stream that has broken
	evOpen                    // Payload is a stream to retry
	evDisk                    // a write is durable
	evTick                    // Payload is a timer
	evReport                  // Payload is a report of a starter or another process
)

// New returns a pool whose daemons all start at time 0. The error says which part of the
// config is invalid.
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
	cfg.StartTime = cfg.StartTime.UTC() // so that hours are the same in every time zone
	if cfg.Ledger != nil {
		if _, err := ledger.Load(cfg.Ledger); err != nil {
			return nil, err
		}
	}
	cfg.Machines, cfg.Jobs = slices.Clone(cfg.Machines), slices.Clone(cfg.Jobs)
	p := &Pool{cfg: cfg, unfinished: len(cfg.Jobs), usedByOwner: map[string]roost.MilliCPU{},
		lastCommand: map[string]int{},
		rand:        eventloop.NewRand(cfg.Seed, 1), byName: map[string]*hostNode{},
		users: make([]userSubmission, len(cfg.Jobs)),
		net:   networkState{links: map[[2]int32]*nodeLink{}}}
	p.hasServices = slices.ContainsFunc(cfg.Jobs, func(j JobConfig) bool { return j.Service != nil })
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
	if cfg.CellMembers > 0 {
		p.cell = newCellQueue(p, cfg.CellMembers)
	}
	for _, n := range p.nodes {
		p.loop.Schedule(eventloop.PlannedEvent{Place: n.id, Kind: evStart})
	}
	if err := p.scheduleJobs(); err != nil {
		return nil, err
	}
	if err := p.loadInitialJobs(); err != nil {
		return nil, err
	}
	p.scheduleOwners()
	if err := p.scheduleDrains(); err != nil {
		return nil, err
	}
	for i, a := range cfg.Actions {
		if a.Job < 0 || a.Job >= len(cfg.Jobs) {
			return nil, fmt.Errorf("act %d: %w: it is about job %d of %d", i, roost.Invalid, a.Job, len(cfg.Jobs))
		}
		p.lastSubmit = max(p.lastSubmit, a.At)
		p.loop.Schedule(eventloop.PlannedEvent{At: a.At, Place: p.schedds[cfg.Jobs[a.Job].Schedd].id, Kind: evAction,
			Number: uint64(i)})
	}
	return p, nil
}

// scheduleJobs plans the submissions.
func (p *Pool) scheduleJobs() error {
	for i := range p.cfg.Jobs {
		j := &p.cfg.Jobs[i]
		if j.Schedd < 0 || j.Schedd >= p.cfg.Schedds {
			return fmt.Errorf("job %d: %w: it is submitted at schedd %d of %d", i, roost.Invalid, j.Schedd,
				p.cfg.Schedds)
		}
		if j.InCell && (p.cell == nil || j.At < 0) {
			return fmt.Errorf("job %d: %w: it goes into the cell's queue, which the pool lacks or where no job is at "+
				"the beginning", i, roost.Invalid)
		}
		if p.lastSubmit = max(p.lastSubmit, j.At); j.At >= 0 {
			p.loop.Schedule(eventloop.PlannedEvent{At: j.At, Place: p.schedds[j.Schedd].id, Kind: evSubmit,
				Number: uint64(i)})
		}
	}
	return nil
}

// Now returns the simulation time.
func (p *Pool) Now() time.Duration { return p.loop.Now() }

// Events returns the number of events so far.
func (p *Pool) Events() uint64 { return p.loop.EventCount() }

// Digest returns the digest of all events so far: equal digests mean equal runs.
func (p *Pool) Digest() uint64 { return p.loop.Digest() }

// NextTime returns the time of the next event; ok is false if there is none.
func (p *Pool) NextTime() (at time.Duration, ok bool) { return p.loop.NextTime() }

// CallAt calls f at an instant, between two events.
func (p *Pool) CallAt(at time.Duration, f func()) {
	p.loop.Schedule(eventloop.PlannedEvent{At: at, Kind: evFunc, Payload: f})
}

// RunNext runs one event; it returns false if there is none.
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

// crashed is the panic value of a daemon that crashes at a failpoint: its present event
// is abandoned.
type crashed struct{ *hostNode }

// runEvent runs an event of a node, up to a crash of the node in it.
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

// RunUntil runs all events up to an instant, and then sets the clock to it.
func (p *Pool) RunUntil(until time.Duration) {
	for at, ok := p.loop.NextTime(); ok && at <= until; at, ok = p.loop.NextTime() {
		p.RunNext()
	}
	p.loop.AdvanceTo(until)
}

// RunToEnd runs until every task has ended, but not beyond an instant. It reports whether
// all have ended.
func (p *Pool) RunToEnd(until time.Duration) bool {
	for at, ok := p.loop.NextTime(); ok && at <= until && !p.AllEnded(); at, ok = p.loop.NextTime() {
		p.RunNext()
	}
	return p.AllEnded()
}

// Nodes returns the names of all nodes by type, in order.
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

// observe passes an event to the observer.
func (p *Pool) observe(s audit.Event) {
	if p.cfg.Observe != nil {
		s.At = p.loop.Now()
		p.cfg.Observe(s)
	}
}

// passFailpoint passes a failpoint of a daemon, which may crash there. It returns false.
func (p *Pool) passFailpoint(n *hostNode, name string) bool {
	if p.cfg.CrashesAt != nil && p.cfg.CrashesAt(n.name, name) {
		panic(crashed{n})
	}
	return false
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K ~uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
