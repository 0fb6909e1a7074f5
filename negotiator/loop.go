package negotiator

import (
	"context"
	"log/slog"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Bounds and times of the loop.
const (
	inboxSize = 4096
	// proposed entries that are not committed; beyond this the next cycle waits, and then
	// decides more at once
	maxOpenProposals   = 8
	maxProposalResults = 1024 // more than the replica lets be pending
	// delay after an entry was not committed although this negotiator seems to lead
	leadershipRetry = 100 * time.Millisecond
)

// proposer is the replicated log as the loop uses it.
type proposer interface {
	// Propose proposes an entry without waiting for its commit. done is called exactly
	// once, in the order of the proposals, with the result of applying the entry, or with
	// an error if this negotiator does not lead. After an error the entry may still be
	// committed, or never.
	Propose(entry []byte, done func(result any, err error))
	// Leadership reports who leads; only the latest report is stored.
	Leadership() <-chan replica.LeadershipChange
}

// decisionLoop is the goroutine that owns the leader state. Events are functions that it
// calls.
type decisionLoop struct {
	node        string // node name, for people
	address     string // address for the other negotiators
	log         *slog.Logger
	period      time.Duration // the longest time between two cycles
	ledgerStore *ledgerStore
	leadership  *leadership

	// from before the ledger existed; they go into the first leadership entry of this
	// negotiator
	legacyAccounts []fairshare.SubmitterAccount
	onLegacyTaken  func() // called when they are committed

	inbox           chan func(now time.Time)
	proposalResults chan proposalResult // buffered for all open proposals
	done            chan struct{}       // closed when the loop has ended

	role           replicaRole
	lastLeadership replica.LeadershipChange // the latest report
	// counts attempts to lead, so that results of an earlier one are recognized
	leadershipTry  uint64
	proposeAgainAt time.Time // when leadership is proposed again; zero: never
	inventory      *machineInventory
	cell           *leaderState // nil unless leading
	metrics        loopMetrics
	openProposals  int // number of open proposals
}

// proposalResult is the result of a proposal.
type proposalResult struct {
	isLeadership uint64
	entry        pendingEntry
	result       ledger.EntryResult
	err          error
}

func newLoop(node, address string, r *ledgerStore, s *leadership, period time.Duration,
	log *slog.Logger) *decisionLoop {
	l := &decisionLoop{
		node: node, address: address, log: log, period: period, ledgerStore: r, leadership: s,
		inventory:       newInventory(),
		inbox:           make(chan func(time.Time), inboxSize),
		proposalResults: make(chan proposalResult, maxProposalResults),
		done:            make(chan struct{}),
	}
	l.metrics = loopMetrics{metrics.NewNegotiator(nil, ""), l}
	return l
}

// run processes events until ctx ends. If this negotiator leads, it runs a cycle after
// each change, once all waiting events are processed.
func (l *decisionLoop) run(ctx context.Context, j proposer) error {
	defer close(l.done)
	periodic := time.NewTicker(l.period)
	defer periodic.Stop()
	for {
		due, stop := l.nextTimer()
		select {
		case <-ctx.Done():
			stop()
			return nil
		case event := <-l.inbox:
			now := time.Now()
			event(now)
			for range len(l.inbox) {
				(<-l.inbox)(now)
			}
		case update := <-j.Leadership():
			l.onLeadership(time.Now(), j, update)
		case o := <-l.proposalResults:
			l.onProposalResult(time.Now(), o)
			for range len(l.proposalResults) {
				l.onProposalResult(time.Now(), <-l.proposalResults)
			}
		case <-due:
			l.runDue(j, time.Now())
		case <-periodic.C:
			l.metrics.refresh(time.Now())
			if l.cell != nil {
				l.cell.chargeAll(time.Now())
				l.cell.changed = true
			}
		}
		stop()
		if l.mayDecide() {
			began := time.Now()
			isCycle := l.cell.changed
			l.runCycleIfChanged(began)
			took := time.Since(began)
			if isCycle {
				l.metrics.CycleTime.Observe(took)
			}
			if took > time.Second {
				l.log.Warn("slow cycle", "took", took, "machines", len(l.inventory.machines))
			}
			l.commitPending(time.Now(), j)
		}
	}
}

// nextTimer returns a timer that fires when something is due.
func (l *decisionLoop) nextTimer() (due <-chan time.Time, stop func()) {
	at, ok := l.nextWake()
	if !ok {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(at))
	return timer.C, func() { timer.Stop() }
}

// nextWake returns when something is due; ok is false if nothing is.
func (l *decisionLoop) nextWake() (at time.Time, ok bool) {
	at = l.proposeAgainAt
	if l.cell != nil {
		if wake, ok := l.cell.nextWake(); ok && (at.IsZero() || wake.Before(at)) {
			at = wake
		}
	}
	return at, !at.IsZero()
}

// runDue does what is due.
func (l *decisionLoop) runDue(j proposer, now time.Time) {
	if l.cell != nil {
		l.cell.markDue(now)
	}
	if !l.proposeAgainAt.IsZero() && !now.Before(l.proposeAgainAt) {
		if l.proposeAgainAt = (time.Time{}); l.lastLeadership.IsLeader {
			l.proposeLeadership(now, j)
		}
	}
}

// mayDecide reports whether this negotiator leads and may make decisions now.
func (l *decisionLoop) mayDecide() bool { return l.cell != nil && l.openProposals < maxOpenProposals }

// runCycleIfChanged runs a cycle if something has changed.
func (l *decisionLoop) runCycleIfChanged(now time.Time) {
	if l.cell.changed {
		l.cell.runCycle(now)
	}
}

// commitPending proposes the pending entry.
func (l *decisionLoop) commitPending(now time.Time, j proposer) {
	if d, ok := l.cell.takePendingEntry(now); ok {
		l.proposeEntry(now, j, l.cell.logEntry(d), d)
	}
}

// proposeEntry stamps an entry with this leader's time and proposes it. The ledger
// decides what follows if the clock of an earlier leader differed: its time stays
// if it is slightly ahead, and goes back if that clock was wrong.
func (l *decisionLoop) proposeEntry(now time.Time, j proposer, e *ledger.LogEntry, d pendingEntry) {
	d.proposedAt, e.At = now, now.UnixNano()
	l.openProposals++
	rise := l.leadershipTry
	j.Propose(e.Encode(nil), func(result any, err error) {
		o := proposalResult{isLeadership: rise, entry: d, err: err}
		if err == nil {
			o.result = result.(ledger.EntryResult)
			o.err = o.result.Err
		}
		l.proposalResults <- o
	})
}

// onProposalResult handles the result of a proposal.
func (l *decisionLoop) onProposalResult(now time.Time, o proposalResult) {
	l.openProposals--
	o.answerAdmins()
	switch {
	case o.isLeadership != l.leadershipTry || l.role == following: // of an earlier attempt to lead
	case o.err != nil:
		l.log.Warn("an entry was not committed", "err", o.err)
		l.stepDown()
		l.proposeAgainAt = now.Add(leadershipRetry)
	case l.role == proposingLeadership:
		l.becomeLeader(now, o.result.Epoch)
	default:
		l.metrics.CommitTime.Observe(now.Sub(o.entry.proposedAt))
		for i, command := range o.entry.ownCommands {
			if err := o.result.Commands[len(o.entry.adminCommands)+i]; err != nil {
				l.log.Warn("a command of the negotiator's own was refused", "kind", command.Kind, "err", err)
			}
		}
		l.cell.sendCommitted(now, o.entry)
		l.cell.changed = l.cell.changed || len(o.entry.adminCommands) > 0
	}
}

// onMachinesChanged handles changes of machines, whether or not this negotiator leads.
func (l *decisionLoop) onMachinesChanged(now time.Time, all []machineUpdate, synced bool) {
	if l.cell == nil {
		l.inventory.applyUpdates(all, synced)
		return
	}
	l.cell.updateMachines(now, all, synced)
}

// onJoined begins a session; it is refused if another negotiator leads.
func (l *decisionLoop) onJoined(now time.Time, hello *wire.ScheddHello, mail *sendQueue) error {
	if l.cell == nil {
		return l.notLeaderError()
	}
	return l.cell.addStream(now, hello, mail)
}

// onMessage handles one message of a session, unless its leader state is gone.
func (l *decisionLoop) onMessage(now time.Time, name string, mail *sendQueue, m *wire.FromSchedd) error {
	if l.cell == nil {
		return nil
	}
	return l.cell.handleMessage(now, name, mail, m)
}

func (l *decisionLoop) onLeft(now time.Time, name string, mail *sendQueue) {
	if l.cell != nil {
		l.cell.removeStream(now, name, mail)
	}
}

// runInLoop runs event in the loop's goroutine and waits for it.
func (l *decisionLoop) runInLoop(ctx context.Context, event func(now time.Time)) error {
	ran := make(chan struct{})
	select {
	case l.inbox <- func(now time.Time) { event(now); close(ran) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errStopping
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return errStopping
	}
}

// postEvent passes an event to the loop without waiting for it.
func (l *decisionLoop) postEvent(ctx context.Context, event func(now time.Time)) {
	select {
	case l.inbox <- event:
	case <-ctx.Done():
	case <-l.done:
	}
}

// errStopping is the error of open sessions when the negotiator ends.
var errStopping error = stopRequest{}

type stopRequest struct{}

func (stopRequest) Error() string { return "negotiator: stopping" }
func (stopRequest) Unwrap() error { return roost.Unavailable }
