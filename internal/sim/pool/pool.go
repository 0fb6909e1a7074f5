package pool

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Pool is a simulated pool under way.
type Pool struct {
	cfg    Config
	k      kernel.Kernel
	rand   *kernel.Rand // of everything that takes time
	nodes  []*node
	byName map[string]*node
	net    network

	schedds  []*scheddNode
	managers []*managerNode
	machines []*machineNode
	users    []user // by job

	unfinished         int // jobs
	tasks, over, lives int
	used               roost.Resources
	by                 map[string]roost.MilliCPU
	waits              []time.Duration
	spent              float64
	endless            int           // of the tasks that live, those that do for ever
	moved              time.Duration // when a task began or ended last
	last               time.Duration // when the last job is submitted
	owned              bool          // some machine has an owner who comes and goes by himself
	lending            Lending
}

// What an event is. Those of a daemon are lost when it dies, and wait while it stands still; those of a host, when the host does.
const (
	evCall    uint8 = iota // With is a func()
	evStart                // of a daemon
	evSubmit               // Number is the job's
	evAct                  // Number is the act's
	evWake                 // a daemon that stood still, or was busy, goes on
	evTask                 // of a host: With is a starter, or a guard
	evDaemon               // the kinds from here on are a daemon's
	evDeliver              // With is a parcel
	evDown                 // With is a stream that has broken
	evOpen                 // With is a stream that is to be tried again
	evDisk                 // what was written is safe
	evTick                 // With is an alarm
	evNews                 // of a starter, With is news
)

// New returns a pool whose daemons all start at the instant 0. The error says what of the config makes no sense.
func New(cfg Config) (*Pool, error) {
	if cfg.Managers < 1 || cfg.Schedds < 1 || len(cfg.Machines) < 1 {
		return nil, fmt.Errorf("%w: a pool of %d central managers, %d schedds and %d machines", roost.Invalid, cfg.Managers, cfg.Schedds, len(cfg.Machines))
	}
	if cfg.Times == (Times{}) {
		if cfg.Times = DefaultTimes(); cfg.Quiet {
			cfg.Times.Lease, cfg.Times.Renew = 40*24*time.Hour, 10*24*time.Hour
		}
	}
	if cfg.Began.IsZero() {
		cfg.Began = time.Unix(epoch, 0)
	}
	cfg.Began = cfg.Began.UTC() // hours are the same wherever it is played
	if cfg.Ledger != nil {
		if _, err := ledger.Load(cfg.Ledger); err != nil {
			return nil, err
		}
	}
	cfg.Machines, cfg.Jobs = slices.Clone(cfg.Machines), slices.Clone(cfg.Jobs)
	p := &Pool{cfg: cfg, unfinished: len(cfg.Jobs), by: map[string]roost.MilliCPU{}, rand: kernel.NewRand(cfg.Seed, 1), byName: map[string]*node{}, users: make([]user, len(cfg.Jobs)),
		net: network{links: map[[2]int32]*link{}}}
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
		p.k.Plan(kernel.Event{Place: n.id, Kind: evStart})
	}
	for i := range cfg.Jobs {
		j := &cfg.Jobs[i]
		if j.Schedd < 0 || j.Schedd >= cfg.Schedds {
			return nil, fmt.Errorf("job %d: %w: it is submitted at schedd %d of %d", i, roost.Invalid, j.Schedd, cfg.Schedds)
		}
		if p.last = max(p.last, j.At); j.At >= 0 {
			p.k.Plan(kernel.Event{At: j.At, Place: p.schedds[j.Schedd].id, Kind: evSubmit, Number: uint64(i)})
		}
	}
	if err := p.before(); err != nil {
		return nil, err
	}
	p.haunt()
	for i, a := range cfg.Acts {
		if a.Job < 0 || a.Job >= len(cfg.Jobs) {
			return nil, fmt.Errorf("act %d: %w: it is about job %d of %d", i, roost.Invalid, a.Job, len(cfg.Jobs))
		}
		p.k.Plan(kernel.Event{At: a.At, Place: p.schedds[cfg.Jobs[a.Job].Schedd].id, Kind: evAct, Number: uint64(i)})
	}
	return p, nil
}

// Now is how much time has passed.
func (p *Pool) Now() time.Duration { return p.k.Now() }

// Events counts what has happened, and Digest stands for all of it.
func (p *Pool) Events() uint64 { return p.k.Happened() }

// Digest stands for all events so far: two runs with the same digest have been the same.
func (p *Pool) Digest() uint64 { return p.k.Digest() }

// Peek is when the next event happens; ok is false when none does.
func (p *Pool) Peek() (at time.Duration, ok bool) { return p.k.Peek() }

// At has f called at an instant, between two events.
func (p *Pool) At(at time.Duration, f func()) {
	p.k.Plan(kernel.Event{At: at, Kind: evCall, With: f})
}

// Next lets one event happen; it reports false when there is none.
func (p *Pool) Next() bool {
	e, ok := p.k.Next()
	if !ok {
		return false
	}
	n := p.nodes[e.Place]
	p.happen(n, e)
	if p.cfg.Checks && n.up && e.Kind != evCall {
		n.part.check()
	}
	return true
}

// dead is what a daemon panics with that dies at a named instant: whatever it was at, it does no more of it.
type dead struct{ *node }

// happen lets an event happen to a node, or as much of it as the node lives to see.
func (p *Pool) happen(n *node, e kernel.Event) {
	if p.cfg.Point != nil {
		defer func() {
			switch x := recover().(type) {
			case nil:
			case dead:
				if x.fail(); len(x.waiting) > 0 {
					x.wakeAt(x.stirs())
				}
			default:
				panic(x)
			}
		}()
	}
	switch e.Kind {
	case evCall:
		e.With.(func())()
	case evStart:
		n.start()
	case evSubmit:
		p.submit(int(e.Number))
	case evAct:
		p.act(int(e.Number))
	case evWake:
		n.wake(e.Number)
	case evTask:
		n.ofHost(e)
	default:
		n.ofDaemon(e)
	}
}

// Run lets everything happen until an instant, or until all jobs are over and nothing is done to the pool any more, whichever comes first.
func (p *Pool) Run(until time.Duration) {
	for at, ok := p.k.Peek(); ok && at <= until; at, ok = p.k.Peek() {
		p.Next()
	}
	p.k.Skip(until)
}

// Finish runs until every task of every job has ended, but no longer than until an instant; it reports whether all have.
func (p *Pool) Finish(until time.Duration) bool {
	for at, ok := p.k.Peek(); ok && at <= until && !p.Done(); at, ok = p.k.Peek() {
		p.Next()
	}
	return p.Done()
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

// see tells the observer.
func (p *Pool) see(s audit.Seen) {
	if p.cfg.Observe != nil {
		s.At = p.k.Now()
		p.cfg.Observe(s)
	}
}

// point passes a named instant of a daemon, which may die there.
func (p *Pool) point(n *node, name string) bool {
	if p.cfg.Point != nil && p.cfg.Point(n.name, name) {
		panic(dead{n})
	}
	return false
}

// sorted are the keys of a map in order.
func sorted[K ~uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
