package replica

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
)

// Bounds on proposals.
const (
	// entries that are proposed and not resolved; equal to raft's limit of one message
	maxProposed = 1024
	maxEntry    = 32 << 20 // bytes
)

// Propose proposes an entry to be committed. It does not wait: many entries may be in
// flight, and are committed in the order of their proposal. done is called exactly once,
// from one goroutine, in the same order, and must not block. It gets the result of Apply,
// or an error of kind Unavailable if this replica does not lead or has lost its
// leadership; in the latter case the next leader may or may not commit the entry. Beyond
// a bound of entries in flight the error is of kind Exhausted, and the entry is not
// proposed.
func (r *Replica) Propose(entry []byte, done func(result any, err error)) {
	rf, err := r.runningRaft()
	if err == nil && len(entry) > maxEntry {
		err = fmt.Errorf("replica %s: %w: an entry of %d bytes, and %d is the most", r.config.Name, roost.Exhausted,
			len(entry), maxEntry)
	}
	r.proposals.proposeEntry(func() raft.ApplyFuture { return rf.Apply(entry, 0) }, err, func(result any, err error) {
		if err != nil {
			err = r.explainError(err)
		}
		done(result, err)
	})
}

// explainError gives raft's errors a kind and advice.
func (r *Replica) explainError(err error) error {
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		return err
	}
	leader := "none is known yet"
	if addr := r.leaderAddress(); addr != "" && addr != r.config.Address {
		leader = "ask " + addr
	}
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) ||
		errors.Is(err, raft.ErrLeadershipLost) {
		return fmt.Errorf("replica %s: %w: %w; %s", r.config.Name, roost.Unavailable, err, leader)
	}
	return fmt.Errorf("replica %s: %w: %w", r.config.Name, roost.Unavailable, err)
}

// pendingProposals holds the proposals that are not resolved, in order.
//
// Raft never answers proposals that it has accepted and not processed when it ends. So
// raft gets no more proposals before it ends, and time to answer the accepted ones; those
// without an answer at its end are resolved without it.
type pendingProposals struct {
	mu       sync.Mutex
	change   *sync.Cond
	waiting  []pendingProposal
	proposed int
	running  bool
	closed   bool
	stopped  bool

	answered    chan struct{}         // closed when raft gets no more proposals and none is in flight
	futures     chan raft.ApplyFuture // at most one is being waited for
	answerLoops chan error
	raftEnded   chan struct{} // closed when raft has ended
}

type pendingProposal struct {
	future raft.ApplyFuture // nil: refused
	err    error
	done   func(any, error)
}

func (p *pendingProposals) init() {
	p.change = sync.NewCond(&p.mu)
	p.answered, p.raftEnded = make(chan struct{}), make(chan struct{})
	p.futures, p.answerLoops = make(chan raft.ApplyFuture), make(chan error, 1)
}

// proposeEntry proposes an entry, unless err is set, and queues its done function. The
// lock is held during apply, so that both have the same order. apply never blocks,
// because raft's queue is not smaller than maxProposed.
func (p *pendingProposals) proposeEntry(apply func() raft.ApplyFuture, err error, done func(any, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := pendingProposal{err: err, done: done}
	switch {
	case err != nil:
	case !p.running || p.closed:
		next.err = raft.ErrRaftShutdown
	case p.proposed >= maxProposed:
		next.err = fmt.Errorf("replica: %w: %d entries are on their way", roost.Exhausted, maxProposed)
	default:
		next.future = apply()
		p.proposed++
	}
	if !p.running {
		go done(nil, next.err) // before the start and after the end no goroutine resolves proposals
		return
	}
	p.waiting = append(p.waiting, next)
	p.change.Signal()
}

func (p *pendingProposals) startWaiting() {
	p.mu.Lock()
	p.running = true
	p.mu.Unlock()
}

// waitForAnswers waits for raft's answers, in a goroutine other than resolveAll, which
// must not wait for one that never comes.
func (p *pendingProposals) waitForAnswers() {
	for future := range p.futures {
		p.answerLoops <- future.Error()
	}
}

// resolveAll resolves proposals until it is stopped and none is left.
func (p *pendingProposals) resolveAll() {
	go p.waitForAnswers()
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
			p.resolveNext(next)
		}
		p.mu.Lock()
	}
}

func (p *pendingProposals) resolveNext(next pendingProposal) {
	if next.future == nil {
		next.done(nil, next.err)
		return
	}
	err := p.answerOf(next.future)
	p.mu.Lock()
	if p.proposed--; p.closed && p.proposed == 0 {
		close(p.answered)
	}
	p.mu.Unlock()
	if err != nil {
		next.done(nil, err)
		return
	}
	next.done(next.future.Response(), nil)
}

// answerOf returns raft's answer, or an error if raft has ended.
func (p *pendingProposals) answerOf(future raft.ApplyFuture) error {
	select {
	case p.futures <- future:
	case <-p.raftEnded: // an earlier proposal was never answered
		return raft.ErrRaftShutdown
	}
	select {
	case err := <-p.answerLoops:
		return err
	case <-p.raftEnded:
		return raft.ErrRaftShutdown
	}
}

// closeAndWait refuses further proposals, and waits at most limit until raft has answered
// all. Raft gives no more answers if it could not write its term.
func (p *pendingProposals) closeAndWait(limit time.Duration) {
	p.mu.Lock()
	p.closed = true
	none := p.proposed == 0
	p.mu.Unlock()
	if none {
		return
	}
	select {
	case <-p.answered:
	case <-time.After(limit):
	}
}

// stopResolving ends resolveAll. Raft must have ended.
func (p *pendingProposals) stopResolving() {
	close(p.raftEnded)
	p.mu.Lock()
	p.stopped = true
	p.change.Signal()
	p.mu.Unlock()
}
