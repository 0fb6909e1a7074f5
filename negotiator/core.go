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

// Log is the replicated log as a Core sees it.
type Log interface {
	// Propose asks for an entry to be committed. done is to be called exactly once, in the order of the proposals, with what Apply made of the entry, or
	// with an error: then it may be committed yet, or never. After that Turn is due.
	Propose(entry []byte, done func(result any, err error))
}

// Core is a negotiator without its goroutines, its network, its disk and its clock: the daemon's own loop, as one turns it by hand. The simulator does, so
// that what it plays is what runs. Whoever drives it tells it what has happened at which time, calls Turn afterwards, and passes on what waits in the
// conversations.
type Core struct {
	loop *loop
	log  ledgerLog
}

// ledgerLog is a Log as the loop sees it. Who leads is told to the core.
type ledgerLog struct{ Log }

func (ledgerLog) Leadership() <-chan replica.Leadership { return nil }

// NewCore returns the negotiator of a node, which follows. The others know it by its address.
func NewCore(node, address string, to Log) *Core {
	standing := newStanding()
	record := newRecord(func(epoch uint64) { standing.move(func(p *position) { p.epoch = max(p.epoch, epoch) }) })
	return &Core{newLoop(node, address, record, standing, defaultPeriod, slog.New(slog.DiscardHandler)), ledgerLog{to}}
}

// Period is the longest time between two cycles: Periodic is to be called so often.
const Period = defaultPeriod

// Apply takes in one entry of the log, on every replica, and returns what Propose's done is to be told.
func (c *Core) Apply(index uint64, entry []byte) any { return c.loop.record.Apply(index, entry) }

// Restore has the ledger begin as one was that was saved, before anything else is told.
func (c *Core) Restore(saved []byte) error { return c.loop.record.Restore(bytes.NewReader(saved)) }

// Digest is of the state that the log amounts to, and the index of the last entry in it: replicas at the same index have the same (P7).
func (c *Core) Digest() (index uint64, sum []byte) { return c.loop.record.Digest() }

// Look lets f read the ledger. What f keeps it copies.
func (c *Core) Look(f func(*ledger.Ledger)) { c.loop.record.look(f) }

// Turned tells who leads: whether this replica does, in which term, and which address it is.
func (c *Core) Turned(now time.Time, leads bool, term uint64, leader string) {
	c.loop.turned(now, c.log, replica.Leadership{Leads: leads, Term: term, Leader: leader})
}

// Leads is the epoch in which this negotiator leads, 0 if it does not; highest is the highest that it has heard of, and leader the address of who leads.
func (c *Core) Leads() (epoch, highest uint64, leader string) {
	p, _ := c.loop.standing.look()
	if p.leads {
		epoch = c.loop.cell.epoch
	}
	return epoch, p.epoch, p.leader
}

// MachineNews is a change of a machine's ad.
type MachineNews struct{ of machineNews }

// ReadMachine makes news of an ad, which belongs to the core from then on; nil: the machine has gone. An ad without a key, by which its machine tells who may
// claim it, is as good as none.
func ReadMachine(now time.Time, name string, started int64, sequence uint64, ad *classad.Ad, private map[string]string) MachineNews {
	if ad == nil {
		return MachineNews{machineNews{name: name}}
	}
	key, err := hex.DecodeString(private[grantKey])
	if err != nil || len(key) == 0 {
		return MachineNews{machineNews{name: name}}
	}
	return MachineNews{newMachineNews(now, name, started, sequence, ad, key, private)}
}

// MachinesChanged takes in what the collectors said; synced: they have told what machines there are.
func (c *Core) MachinesChanged(now time.Time, all []MachineNews, synced bool) {
	news := make([]machineNews, len(all))
	for i, n := range all {
		news[i] = n.of
	}
	c.loop.machinesChanged(now, news, synced)
}

// Conversation is that with one schedd.
type Conversation struct {
	schedd string
	mail   *mailbox
}

// Join begins a conversation. The error says that another leads.
func (c *Core) Join(now time.Time, hello *wire.ScheddHello) (*Conversation, error) {
	v := &Conversation{hello.GetName(), newMailbox()}
	return v, c.loop.joined(now, hello, v.mail)
}

// Hear takes in one message of a conversation. The error ends it.
func (c *Core) Hear(now time.Time, v *Conversation, m *wire.FromSchedd) error {
	err := c.loop.heard(now, v.schedd, v.mail, m)
	if err != nil {
		v.mail.end(err)
	}
	return err
}

// Leave ends a conversation.
func (c *Core) Leave(now time.Time, v *Conversation) { c.loop.left(now, v.schedd, v.mail) }

// Take returns what is to be sent to the schedd, and why the conversation is to end after that, nil if it is not. Late says that grants among it were decided
// so long ago that another may lead by now: they may be sent only if a majority says that this negotiator still does.
func (v *Conversation) Take(now time.Time) (messages []*wire.ToSchedd, late bool, ended error) {
	messages, since, ended := v.mail.take()
	return messages, !since.IsZero() && now.Sub(since) > lateAfter, ended
}

// Periodic is to be called each Period: it charges who uses what, and makes a cycle due.
func (c *Core) Periodic(now time.Time) {
	if c.loop.cell != nil {
		c.loop.cell.charge(now)
		c.loop.cell.changed = true
	}
}

// Turn does what follows from all that has happened: what was committed is sent, what is due is done, and if something has changed a cycle is made. It
// reports whether one was.
func (c *Core) Turn(now time.Time) (cycled bool) {
	for n := len(c.loop.outcomes); n > 0; n-- {
		c.loop.settled(now, <-c.loop.outcomes)
	}
	c.loop.stir(c.log, now)
	if !c.loop.ready() {
		return false
	}
	cycled = c.loop.cell.changed
	c.loop.plan(now)
	c.loop.commit(now, c.log)
	return cycled
}

// Wake is when Turn is due though nothing has happened; ok is false when nothing waits for time.
func (c *Core) Wake() (at time.Time, ok bool) { return c.loop.wake() }

// Machines are what this negotiator knows of, in order. The caller only reads them.
func (c *Core) Machines() []*match.Machine { return c.loop.inventory.sorted }
