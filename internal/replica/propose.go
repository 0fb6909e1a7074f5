package replica

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
)

// Bounds on what is proposed.
const (
	maxInFlight = 1024     // entries that were proposed and are not settled; raft takes no more at once into one message either
	maxEntry    = 32 << 20 // bytes
)

// Propose asks for an entry to be committed. It does not wait: many may be on their way, and are committed in the order in which they were
// proposed. done is called exactly once, from one goroutine, in that order too, which it must not hold up; with the result of Apply, or with
// an error of kind Unavailable where this replica does not lead, or has ceased to: then the next leader may commit the entry, or nobody
// ever. Beyond a bound of entries in flight the error is of kind Exhausted, and the entry is not proposed.
func (r *Replica) Propose(entry []byte, done func(result any, err error)) {
	rf, err := r.started()
	if err == nil && len(entry) > maxEntry {
		err = fmt.Errorf("replica %s: %w: an entry of %d bytes, and %d is the most", r.cfg.Name, roost.Exhausted, len(entry), maxEntry)
	}
	r.proposals.add(func() raft.ApplyFuture { return rf.Apply(entry, 0) }, err, func(result any, err error) {
		if err != nil {
			err = r.explain(err)
		}
		done(result, err)
	})
}

// explain gives raft's errors a kind and a cure.
func (r *Replica) explain(err error) error {
	var kind roost.Kind
	if errors.As(err, &kind) {
		return err
	}
	leader := "none is known yet"
	if addr := r.leader(); addr != "" && addr != r.cfg.Address {
		leader = "ask " + addr
	}
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) || errors.Is(err, raft.ErrLeadershipLost) {
		return fmt.Errorf("replica %s: %w: %w; %s", r.cfg.Name, roost.Unavailable, err, leader)
	}
	return fmt.Errorf("replica %s: %w: %w", r.cfg.Name, roost.Unavailable, err)
}

// proposals are those that are not settled, in order.
//
// What raft has taken in and not looked at when it ends it never answers. So it is given nothing more before it ends, and time to answer what it has; and what
// it has not answered by its end is settled without it.
type proposals struct {
	mu       sync.Mutex
	change   *sync.Cond
	waiting  []proposal
	inFlight int
	running  bool
	closed   bool
	stopped  bool

	answered chan struct{}         // closed when no more are given to raft and none of those is in flight
	futures  chan raft.ApplyFuture // at most one is being asked
	answers  chan error
	gone     chan struct{} // closed when raft has ended
}

type proposal struct {
	future raft.ApplyFuture // nil: refused
	err    error
	done   func(any, error)
}

func (p *proposals) init() {
	p.change = sync.NewCond(&p.mu)
	p.answered, p.gone = make(chan struct{}), make(chan struct{})
	p.futures, p.answers = make(chan raft.ApplyFuture), make(chan error, 1)
}

// add proposes, unless there is an error already, and queues what is to be told. The lock is held over apply, so that both orders are one;
// apply never waits, since what raft can take is not less than maxInFlight.
func (p *proposals) add(apply func() raft.ApplyFuture, err error, done func(any, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := proposal{err: err, done: done}
	switch {
	case err != nil:
	case !p.running || p.closed:
		next.err = raft.ErrRaftShutdown
	case p.inFlight >= maxInFlight:
		next.err = fmt.Errorf("replica: %w: %d entries are on their way", roost.Exhausted, maxInFlight)
	default:
		next.future = apply()
		p.inFlight++
	}
	if !p.running {
		go done(nil, next.err) // before the start and after the end there is nobody else to do it
		return
	}
	p.waiting = append(p.waiting, next)
	p.change.Signal()
}

func (p *proposals) start() {
	p.mu.Lock()
	p.running = true
	p.mu.Unlock()
}

// wait waits for the answers of raft, apart from run, which must not wait for one that never comes.
func (p *proposals) wait() {
	for future := range p.futures {
		p.answers <- future.Error()
	}
}

// run settles proposals until it is stopped and none is left.
func (p *proposals) run() {
	go p.wait()
	defer close(p.futures)
	p.mu.Lock()
	for {
		for len(p.waiting) == 0 && !p.stopped {
			p.change.Wait()
		}
		batch := p.waiting
		p.waiting = nil
		if len(batch) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		for _, next := range batch {
			p.settle(next)
		}
		p.mu.Lock()
	}
}

func (p *proposals) settle(next proposal) {
	if next.future == nil {
		next.done(nil, next.err)
		return
	}
	err := p.answer(next.future)
	p.mu.Lock()
	if p.inFlight--; p.closed && p.inFlight == 0 {
		close(p.answered)
	}
	p.mu.Unlock()
	if err != nil {
		next.done(nil, err)
		return
	}
	next.done(next.future.Response(), nil)
}

// answer is raft's, or that it has ended.
func (p *proposals) answer(future raft.ApplyFuture) error {
	select {
	case p.futures <- future:
	case <-p.gone: // one before it was never answered
		return raft.ErrRaftShutdown
	}
	select {
	case err := <-p.answers:
		return err
	case <-p.gone:
		return raft.ErrRaftShutdown
	}
}

// close refuses what is proposed from now on, and waits until raft has answered all that it was given, for so long at most: where it could not write its
// term it answers nothing more.
func (p *proposals) close(limit time.Duration) {
	p.mu.Lock()
	p.closed = true
	none := p.inFlight == 0
	p.mu.Unlock()
	if none {
		return
	}
	select {
	case <-p.answered:
	case <-time.After(limit):
	}
}

// stop ends run. Raft has ended.
func (p *proposals) stop() {
	close(p.gone)
	p.mu.Lock()
	p.stopped = true
	p.change.Signal()
	p.mu.Unlock()
}
