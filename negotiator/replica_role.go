package negotiator

import (
	"cmp"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// replicaRole is the role of a negotiator among its replicas. The package's comment draws
// it.
type replicaRole int

const (
	following           replicaRole = iota // another negotiator leads, or none
	proposingLeadership                    // the replica leads, and its leadership entry is not committed
	leading                                // it is committed: there is leader state
)

func (s replicaRole) String() string { return [...]string{"following", "rising", "leading"}[s] }

// setRole changes the role, and panics on an illegal change.
func (l *decisionLoop) setRole(next replicaRole) {
	ok := next == following || l.role+1 == next
	if !ok || (next == leading) != (l.cell != nil) {
		panic(fmt.Sprintf("negotiator: from %v to %v, cell %v", l.role, next, l.cell != nil))
	}
	l.role, l.proposeAgainAt = next, time.Time{}
}

// onLeadership handles a report of who leads. If this replica leads in a new term
// directly after an old one, another one may have led in between without being noticed.
func (l *decisionLoop) onLeadership(now time.Time, j proposer, update replica.LeadershipChange) {
	before := l.lastLeadership
	l.lastLeadership = update
	if l.role != following && (!update.IsLeader || update.Term != before.Term) {
		l.stepDown()
	}
	if update.IsLeader && l.role == following {
		l.proposeLeadership(now, j)
	}
	l.publishLeadership()
}

// proposeLeadership proposes an entry by which this negotiator leads from then on. Its
// epoch is higher than all before, so later entries of earlier leaders are void.
func (l *decisionLoop) proposeLeadership(now time.Time, j proposer) {
	l.setRole(proposingLeadership)
	l.leadershipTry++
	l.proposeEntry(now, j, &ledger.LogEntry{Lead: l.node, Accounts: l.legacyAccounts}, pendingEntry{})
}

// becomeLeader begins to lead. All grants of earlier leaders were applied before the
// entry that made the epoch.
func (l *decisionLoop) becomeLeader(now time.Time, epoch uint64) {
	if l.legacyAccounts != nil {
		l.legacyAccounts = nil
		l.onLegacyTaken()
	}
	l.cell = newCell(epoch, l.inventory, l.ledgerStore, l.log)
	l.cell.metrics = l.metrics.Negotiator
	l.cell.loadFromLedger(now)
	l.setRole(leading)
	l.publishLeadership()
	l.log.Info("this negotiator leads", "epoch", epoch, "machines", len(l.inventory.machines))
}

// stepDown ends leadership: all sessions end, and what is not committed is not sent.
func (l *decisionLoop) stepDown() {
	if l.cell != nil {
		proposalResult{entry: l.cell.pendingEntry, err: l.notLeaderError()}.answerAdmins()
		l.cell.endStreams(l.notLeaderError())
		l.log.Info("this negotiator is no longer the leader",
			"epoch", l.cell.epoch, "leader", l.lastLeadership.Leader)
	}
	l.cell = nil
	l.setRole(following)
	l.publishLeadership()
}

// publishLeadership reports who leads to all watchers.
func (l *decisionLoop) publishLeadership() {
	leader := l.lastLeadership.Leader
	if l.lastLeadership.IsLeader {
		leader = l.address
	}
	l.leadership.setState(func(p *leadershipState) {
		p.isLeader, p.leader = l.role == leading, leader
		if l.cell != nil {
			p.epoch = max(p.epoch, l.cell.epoch)
		}
	})
}

// notLeaderError says why this negotiator accepts no sessions now.
func (l *decisionLoop) notLeaderError() error {
	where := cmp.Or(l.lastLeadership.Leader, "which is unknown yet")
	if where == l.address {
		where = "which this negotiator is about to become"
	}
	return fmt.Errorf("negotiator %s: %w: only the leader negotiates: %s", l.node, roost.Unavailable, where)
}
