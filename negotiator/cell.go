package negotiator

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// Bounds, and how long things are remembered.
const (
	maxRequests   = 100_000                // of one schedd
	maxUnanswered = 4096                   // grants on their way to one schedd
	grantLife     = 10 * time.Second       // of a grant that nobody answers, and of one that the machine's ad does not show
	heldFor       = 40 * time.Minute       // what a schedd held when it went away is charged for so long: the lease of its jobs
	settleAfter   = 100 * time.Millisecond // after this a claimed grant is taken to be part of what its schedd wants
	explainEvery  = time.Second            // for each request
	explainAtOnce = 32                     // requests in one cycle
	grantKey      = "GrantKey"             // the private attribute of machine ads, in hex
)

// cell is what the negotiator knows. It belongs to one goroutine, does no I/O and reads no clock.
type cell struct {
	epoch    uint64
	log      *slog.Logger
	matcher  *match.Matcher
	book     *share.Book
	machines map[string]*machine
	total    roost.Resources // of all machines
	schedds  map[string]*schedd
	pending  map[uint64]*pending
	promised map[string][]*pending // by machine
	lastID   uint64
	begun    time.Time  // of the first cycle
	synced   bool       // the collectors have told what machines there are
	changed  bool       // a cycle may find something new
	settling []settling // oldest first
	sweep    time.Time  // when lapse next has something to do; zero for never
	explain  time.Time  // when a request is to be explained that had to wait; zero for none
}

// machine is a machine and the key that proves grants to it.
type machine struct {
	*match.Machine
	key []byte
}

func newCell(epoch uint64, book *share.Book, log *slog.Logger) *cell {
	return &cell{
		epoch: epoch, log: log, matcher: match.NewMatcher(), book: book,
		machines: map[string]*machine{}, schedds: map[string]*schedd{}, pending: map[uint64]*pending{}, promised: map[string][]*pending{},
	}
}

// machineNews is a change of a machine's ad, parsed.
type machineNews struct {
	name    string
	machine *machine // nil: gone
}

// readMachine parses a change. An ad that makes no sense, or has no key, is as good as none.
func readMachine(c advertise.Change, log *slog.Logger) machineNews {
	news := machineNews{name: c.Name}
	if c.Removed {
		return news
	}
	ad, err := classad.Parse(c.Ad)
	if err != nil {
		log.Warn("machine ad makes no sense", "machine", c.Name, "err", err)
		return news
	}
	key, err := hex.DecodeString(c.Private[grantKey])
	if err != nil || len(key) == 0 {
		log.Warn("machine ad has no grant key", "machine", c.Name)
		return news
	}
	news.machine = &machine{match.NewMachine(c.Name, c.Started, c.Sequence, ad), key}
	return news
}

// machinesChanged takes in what the collectors said.
func (c *cell) machinesChanged(all []machineNews, synced bool) {
	for _, news := range all {
		if old := c.machines[news.name]; old != nil {
			c.total = c.total.Sub(old.Total)
			delete(c.machines, news.name)
		}
		if m := news.machine; m != nil {
			c.total = c.total.Add(m.Total)
			c.machines[news.name] = m
			for _, p := range slices.Clone(c.promised[news.name]) {
				if shows(m, p) {
					c.forget(p)
				}
			}
		}
	}
	c.synced = c.synced || synced
	c.changed = true
}

// joined takes in a schedd's new conversation, which replaces the one before.
func (c *cell) joined(now time.Time, name string, mail *mailbox) {
	s := c.schedds[name]
	if s == nil {
		s = &schedd{name: name}
		c.schedds[name] = s
	}
	c.drop(now, s)
	s.mail, s.held = mail, map[share.Submitter]roost.Resources{}
	c.charge(now)
	mail.put(&wire.ToSchedd{Of: &wire.ToSchedd_Hello{Hello: &wire.NegotiatorHello{Epoch: c.epoch}}})
}

// left ends a schedd's conversation, unless a newer one has replaced it.
func (c *cell) left(now time.Time, name string, mail *mailbox) {
	if s := c.schedds[name]; s != nil && s.mail == mail {
		c.drop(now, s)
	}
}

// drop forgets what a conversation was about. Grants that were not answered lapse by themselves; their results have nowhere to come from.
func (c *cell) drop(now time.Time, s *schedd) {
	if s.mail != nil {
		s.mail.end()
	}
	s.mail, s.away, s.requests = nil, now, map[uint64]*request{}
	c.changed = true
}

// heard takes in one message of a schedd. An error ends its conversation.
func (c *cell) heard(now time.Time, name string, mail *mailbox, m *wire.FromSchedd) error {
	s := c.schedds[name]
	if s == nil || s.mail != mail {
		return nil // a newer conversation has replaced this one
	}
	switch of := m.GetOf().(type) {
	case *wire.FromSchedd_Request:
		c.changed = true
		return s.update(of.Request)
	case *wire.FromSchedd_Result:
		c.answered(now, s, of.Result)
	case *wire.FromSchedd_Usage:
		u := of.Usage
		who := share.Submitter{Group: u.GetGroup(), Owner: u.GetOwner()}
		held := u.GetHeld().Vector()
		if len(s.held) >= maxRequests {
			return fmt.Errorf("schedd %s: %w: usage of %d submitters", name, roost.Exhausted, maxRequests)
		}
		if held.Negative() || held == (roost.Resources{}) {
			delete(s.held, who)
		} else {
			s.held[who] = held
		}
		c.chargeOne(now, who)
	}
	return nil
}
