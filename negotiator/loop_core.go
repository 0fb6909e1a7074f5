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

// ReplicatedLog is the replicated log as a LoopCore sees it.
type ReplicatedLog interface {
	// Propose asks for an entry to be committed. done is to be called exactly once, in
	// the order of the proposals, with what Apply made of the entry, or with an error:
	// then it may be committed yet, or never. After that ProcessEvents is due.
	Propose(entry []byte, done func(result any, err error))
}

// LoopCore is a negotiator without its goroutines, its network, its disk and its clock:
// the daemon's own loop, as one turns it by hand. The simulator does, so that what it
// plays is what runs. Whoever drives it tells it what has happened at which time, calls
// ProcessEvents afterwards, and passes on what waits in the conversations.
type LoopCore struct {
	loop *decisionLoop
	log  ledgerLog
}

// ledgerLog is a ReplicatedLog as the loop sees it. Who leads is told to the core.
type ledgerLog struct{ ReplicatedLog }

func (ledgerLog) Leadership() <-chan replica.LeadershipChange { return nil }

// NewCore returns the negotiator of a node, which follows. The others know it by its
// address.
func NewCore(node, address string, to ReplicatedLog) *LoopCore {
	leadership := newLeadership()
	record := newLedgerStore(func(epoch uint64) {
		leadership.setState(func(p *leadershipState) { p.epoch = max(p.epoch, epoch) })
	})
	return &LoopCore{newLoop(node, address, record, leadership, defaultPeriod, slog.New(slog.DiscardHandler)),
		ledgerLog{to}}
}

// CyclePeriod is the longest time between two cycles: Periodic is to be called so often.
const CyclePeriod = defaultPeriod

// Apply takes in one entry of the log, on every replica, and returns what Propose's done
// is to be told.
func (c *LoopCore) Apply(index uint64, entry []byte) any {
	return c.loop.ledgerStore.Apply(index, entry)
}

// Restore has the ledger begin as one was that was saved, before anything else is told.
func (c *LoopCore) Restore(saved []byte) error {
	return c.loop.ledgerStore.Restore(bytes.NewReader(saved))
}

// Digest is of the state that the log amounts to, and the index of the last entry in it:
// replicas at the same index have the same (P7).
func (c *LoopCore) Digest() (index uint64, sum []byte) { return c.loop.ledgerStore.Digest() }

// ViewLedger lets f read the ledger. What f keeps it copies.
func (c *LoopCore) ViewLedger(f func(*ledger.Ledger)) { c.loop.ledgerStore.view(f) }

// LeadershipChanged tells who leads: whether this replica does, in which term, and which
// address it is.
func (c *LoopCore) LeadershipChanged(now time.Time, leads bool, term uint64, leader string) {
	c.loop.onLeadership(now, c.log, replica.LeadershipChange{IsLeader: leads, Term: term, Leader: leader})
}

// LeadingEpoch is the epoch in which this negotiator leads, 0 if it does not; highest is
// the highest that it has heard of, and leader the address of who leads.
func (c *LoopCore) LeadingEpoch() (epoch, highest uint64, leader string) {
	p, _ := c.loop.leadership.currentState()
	if p.isLeader {
		epoch = c.loop.cell.epoch
	}
	return epoch, p.epoch, p.leader
}

// MachineUpdate is a change of a machine's ad.
type MachineUpdate struct{ update machineUpdate }

// ReadMachineUpdate makes news of an ad, which belongs to the core from then on; nil: the
// machine has gone. An ad without a key, by which its machine tells who may claim it, is
// as good as none.
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

// MachinesChanged takes in what the collectors said; synced: they have told what machines
// there are.
func (c *LoopCore) MachinesChanged(now time.Time, all []MachineUpdate, synced bool) {
	update := make([]machineUpdate, len(all))
	for i, n := range all {
		update[i] = n.update
	}
	c.loop.onMachinesChanged(now, update, synced)
}

// ScheddSession is that with one schedd.
type ScheddSession struct {
	schedd    string
	sendQueue *sendQueue
}

// JoinSchedd begins a conversation. The error says that another leads.
func (c *LoopCore) JoinSchedd(now time.Time, hello *wire.ScheddHello) (*ScheddSession, error) {
	v := &ScheddSession{hello.GetName(), newSendQueue()}
	return v, c.loop.onJoined(now, hello, v.sendQueue)
}

// HandleMessage takes in one message of a conversation. The error ends it.
func (c *LoopCore) HandleMessage(now time.Time, v *ScheddSession, m *wire.FromSchedd) error {
	err := c.loop.onMessage(now, v.schedd, v.sendQueue, m)
	if err != nil {
		v.sendQueue.endStream(err)
	}
	return err
}

// EndSession ends a conversation.
func (c *LoopCore) EndSession(now time.Time, v *ScheddSession) {
	c.loop.onLeft(now, v.schedd, v.sendQueue)
}

// TakeMessages returns what is to be sent to the schedd, and why the conversation is to
// end after that, nil if it is not. Late says that grants among it were decided so long
// ago that another may lead by now: they may be sent only if a majority says that this
// negotiator still does.
func (v *ScheddSession) TakeMessages(now time.Time) (messages []*wire.ToSchedd, late bool, ended error) {
	messages, since, ended := v.sendQueue.takeAll()
	return messages, !since.IsZero() && now.Sub(since) > maxUnverifiedAge, ended
}

// RunPeriodic is to be called each CyclePeriod: it charges who uses what, and makes a
// cycle due.
func (c *LoopCore) RunPeriodic(now time.Time) {
	if c.loop.cell != nil {
		c.loop.cell.chargeAll(now)
		c.loop.cell.changed = true
	}
}

// ProcessEvents does what follows from all that has happened: what was committed is sent,
// what is due is done, and if something has changed a cycle is made. It reports whether
// one was.
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

// NextWake is when ProcessEvents is due though nothing has happened; ok is false when
// nothing waits for time.
func (c *LoopCore) NextWake() (at time.Time, ok bool) { return c.loop.nextWake() }

// Machines are what this negotiator knows of, in order. The caller only reads them.
func (c *LoopCore) Machines() []*match.Machine { return c.loop.inventory.sorted }
