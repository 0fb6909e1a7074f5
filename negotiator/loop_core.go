package negotiator

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// ReplicatedLog is the replicated log as a LoopCore uses it.
type ReplicatedLog interface {
	// Propose proposes an entry. done must be called exactly once, in the order of the
	// proposals, with the result of Apply or with an error. After an error the entry may
	// still be committed, or never. ProcessEvents is due after that.
	Propose(entry []byte, done func(result any, err error))
}

// LoopCore is a negotiator without goroutines, network, disk and clock: the daemon's own
// loop, called step by step. The simulator uses it, so it simulates what really runs. Its
// caller reports events with their times, then calls ProcessEvents, and sends what waits
// in the sessions.
type LoopCore struct {
	loop *decisionLoop
	log  ledgerLog
}

// ledgerLog is a ReplicatedLog in the form that the loop uses. LeadershipChanged reports
// who leads.
type ledgerLog struct{ ReplicatedLog }

func (ledgerLog) Leadership() <-chan replica.LeadershipChange { return nil }

// NewCore returns the core of a node's negotiator, which follows at first. The others
// know it by its address.
func NewCore(node, address string, to ReplicatedLog) *LoopCore {
	leadership := newLeadership()
	record := newLedgerStore(func(epoch uint64) {
		leadership.setState(func(p *leadershipState) { p.epoch = max(p.epoch, epoch) })
	})
	return &LoopCore{newLoop(node, address, record, leadership, defaultPeriod, slog.New(slog.DiscardHandler)),
		ledgerLog{to}}
}

// CyclePeriod is the longest time between two cycles: RunPeriodic must be called that
// often.
const CyclePeriod = defaultPeriod

// Apply applies one entry of the log, on every replica. Its result is for the done
// function of Propose.
func (c *LoopCore) Apply(index uint64, entry []byte) any {
	return c.loop.ledgerStore.Apply(index, entry)
}

// Restore loads a saved ledger, before anything else is reported.
func (c *LoopCore) Restore(saved []byte) error {
	return c.loop.ledgerStore.Restore(bytes.NewReader(saved))
}

// Digest returns a digest of the state, and the index of the last applied entry. Replicas
// at the same index must have the same digest (P7).
func (c *LoopCore) Digest() (index uint64, sum []byte) { return c.loop.ledgerStore.Digest() }

// ViewLedger lets f read the ledger. f must copy what it retains.
func (c *LoopCore) ViewLedger(f func(*ledger.Ledger)) { c.loop.ledgerStore.view(f) }

// LeadershipChanged reports who leads: whether this replica does, in which term, and the
// leader's address.
func (c *LoopCore) LeadershipChanged(now time.Time, leads bool, term uint64, leader string) {
	c.loop.onLeadership(now, c.log, replica.LeadershipChange{IsLeader: leads, Term: term, Leader: leader})
}

// LeadingEpoch returns the epoch in which this negotiator leads, 0 if it does not.
// highest is the highest known epoch, and leader the address of the leader.
func (c *LoopCore) LeadingEpoch() (epoch, highest uint64, leader string) {
	p, _ := c.loop.leadership.currentState()
	if p.isLeader {
		epoch = c.loop.cell.epoch
	}
	return epoch, p.epoch, p.leader
}

// MachineUpdate is a change of a machine ad.
type MachineUpdate struct{ update machineUpdate }

// ReadMachineUpdate returns an update with an ad, which the core owns from then on. A nil
// ad means that the machine has gone. An ad without a grant key counts as gone.
func ReadMachineUpdate(now time.Time, name string, started int64, sequence uint64, ad *classad.Ad,
	private map[string]string) MachineUpdate {
	if ad == nil {
		return MachineUpdate{machineUpdate{name: name}}
	}
	key, err := hex.DecodeString(private[grantKey])
	if err != nil || len(key) == 0 {
		return MachineUpdate{machineUpdate{name: name}}
	}
	return MachineUpdate{newMachineUpdate(now, name, started, sequence, ad, key, private)}
}

// MachinesChanged handles changes of machines. synced says that the collectors have
// reported all machines.
func (c *LoopCore) MachinesChanged(now time.Time, all []MachineUpdate, synced bool) {
	update := make([]machineUpdate, len(all))
	for i, n := range all {
		update[i] = n.update
	}
	c.loop.onMachinesChanged(now, update, synced)
}

// ScheddSession is the session with one schedd.
type ScheddSession struct {
	schedd    string
	sendQueue *sendQueue
}

// JoinSchedd begins a session. The error says that another negotiator leads.
func (c *LoopCore) JoinSchedd(now time.Time, hello *wire.ScheddHello) (*ScheddSession, error) {
	v := &ScheddSession{hello.GetName(), newSendQueue()}
	return v, c.loop.onJoined(now, hello, v.sendQueue)
}

// HandleMessage handles one message of a session. An error ends it.
func (c *LoopCore) HandleMessage(now time.Time, v *ScheddSession, m *wire.FromSchedd) error {
	err := c.loop.onMessage(now, v.schedd, v.sendQueue, m)
	if err != nil {
		v.sendQueue.endStream(err)
	}
	return err
}

// EndSession ends a session.
func (c *LoopCore) EndSession(now time.Time, v *ScheddSession) {
	c.loop.onLeft(now, v.schedd, v.sendQueue)
}

// TakeMessages returns the messages to send, and why the session must end after them, or
// nil. late says that grants among them are so old that another negotiator may lead by
// now. Then they may be sent only if a majority confirms that this one still leads.
func (v *ScheddSession) TakeMessages(now time.Time) (messages []*wire.ToSchedd, late bool, ended error) {
	messages, since, ended := v.sendQueue.takeAll()
	return messages, !since.IsZero() && now.Sub(since) > maxUnverifiedAge, ended
}

// Administer has a command of an administrator committed with the next entry, and reports
// whether this negotiator leads. ProcessEvents calls done with the result.
func (c *LoopCore) Administer(command ledger.AdminCommand, done func(error)) bool {
	if c.loop.cell == nil {
		return false
	}
	pending := &c.loop.cell.pendingEntry
	pending.adminCommands = append(pending.adminCommands, adminCommand{command, done})
	return true
}

// RunPeriodic must be called every CyclePeriod. It charges usage and makes a cycle due.
func (c *LoopCore) RunPeriodic(now time.Time) {
	if c.loop.cell != nil {
		c.loop.cell.chargeAll(now)
		c.loop.cell.changed = true
	}
}

// ProcessEvents does what follows from all events. It sends what was committed, does what
// is due, and runs a cycle if something has changed. It reports whether it ran one.
func (c *LoopCore) ProcessEvents(now time.Time) (cycled bool) {
	for n := len(c.loop.proposalResults); n > 0; n-- {
		c.loop.onProposalResult(now, <-c.loop.proposalResults)
	}
	c.loop.runDue(c.log, now)
	if !c.loop.mayDecide() {
		return false
	}
	cycled = c.loop.cell.changed
	c.loop.runCycleIfChanged(now)
	c.loop.commitPending(now, c.log)
	return cycled
}

// NextWake returns when ProcessEvents is due without an event; ok is false if it is not.
func (c *LoopCore) NextWake() (at time.Time, ok bool) { return c.loop.nextWake() }

// Machines returns the known machines, in order. The caller must not modify them.
func (c *LoopCore) Machines() []*match.Machine { return c.loop.inventory.sorted }
