package negotiator

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
	"github.com/roost-batch/roost/negotiator/suspect"
)

// Bounds, and how long things are remembered.
const (
	maxRequests   = 100_000                // of one schedd
	maxAdBytes    = 256 << 20              // of the requests of one schedd
	maxSchedds    = 16                     // of one node
	maxUnanswered = 4096                   // grants on their way to one schedd
	grantLife     = 10 * time.Second       // of a grant that nobody answers, and of one that the machine's ad does not show
	heldFor       = 40 * time.Minute       // what a schedd held when it went away is charged for so long: the lease of its jobs
	settleAfter   = 100 * time.Millisecond // after this a claimed grant is taken to be part of what its schedd wants
	explainEvery  = time.Second            // for each request
	explainAtOnce = 32                     // requests in one cycle
)

// cell is what the negotiator knows. It belongs to one goroutine, does no I/O and reads no clock.
type cell struct {
	*inventory
	epoch     uint64
	log       *slog.Logger
	matcher   *match.Matcher
	announced announcement
	policy    picture.Policy
	record    *record // accounts and what administrators have set: what the log says, and only it changes it
	schedds   map[string]*schedd
	pending   map[uint64]*pending
	promised  map[string][]*pending // by machine
	lastID    uint64
	begun     time.Time // of the first cycle
	draft     draft
	evicted   disruptions
	rivalry   rivalry
	holdsBy   time.Time                           // when what is held in the draft is to be committed at the latest; zero for never
	charged   map[share.Submitter]float64         // what each uses, in cores, as it stands in the log or in a draft
	absent    map[share.Submitter]roost.Resources // what claims of schedds hold that this cell has not heard
	audited   bool                                // what all use was compared with the log since the machines are known
	changed   bool                                // a cycle may find something new
	settling  []settling                          // oldest first
	sweep     time.Time                           // when lapse next has something to do; zero for never
	suspects  suspect.Book
	drains    []match.Drain        // by node
	own       map[string]time.Time // machines that were drained by themselves, and when
	probing   map[string]int       // machines on trial, and how many tasks more they may get now
	lost      replacements
	kept      []match.Kept // as the schedds were told
	keeps     bool         // they were told, as there was a plan
	explain   time.Time    // when a request is to be explained that had to wait; zero for none
	starts    starts
	plans     int // that were made
}

func newCell(epoch uint64, known *inventory, r *record, log *slog.Logger) *cell {
	return &cell{
		inventory: known, epoch: epoch, log: log, matcher: match.NewMatcher(), record: r,
		schedds: map[string]*schedd{}, pending: map[uint64]*pending{}, promised: map[string][]*pending{},
		draft: newDraft(), charged: map[share.Submitter]float64{}, own: map[string]time.Time{},
	}
}

// machinesChanged takes in what the collectors said.
func (c *cell) machinesChanged(now time.Time, all []machineNews, synced bool) {
	c.inventory.apply(all, synced)
	for _, news := range all {
		for _, p := range slices.Clone(c.promised[news.name]) {
			switch {
			case news.machine == nil:
			case shows(news.machine, p):
				c.forget(now, p)
			case over(news.machine, p):
				c.strike(p)
				c.forget(now, p)
			}
		}
	}
	c.changed = true
}

// joined takes in a schedd's new conversation, which replaces the one before.
func (c *cell) joined(now time.Time, hello *wire.ScheddHello, mail *mailbox) error {
	name := hello.GetName()
	s := c.schedds[name]
	if s == nil {
		if node := nodeOf(name); c.scheddsOf(node) >= maxSchedds {
			return fmt.Errorf("schedd %s: %w: the node %s has %d schedds, and that is the most", name, roost.Exhausted, node, maxSchedds)
		}
		s = &schedd{name: name}
		c.schedds[name] = s
	}
	c.drop(now, s)
	c.tellsOf(now, s, hello, mail)
	s.mail, s.held = mail, map[share.Submitter]roost.Resources{}
	s.demand, s.admitted, s.announced = map[payer]demand{}, nil, nil
	s.notice, s.full = notice{}, nil
	if s.told = !hello.GetTells(); s.told {
		s.ran = nil
	}
	c.charge(now)
	mail.put(&wire.ToSchedd{Of: &wire.ToSchedd_Hello{Hello: &wire.NegotiatorHello{Epoch: c.epoch}}})
	c.announce()
	if c.keeps {
		mail.put(c.keepsFree())
	}
	return nil
}

// nodeOf is the node of a schedd, by whose certificate it speaks: see [service.greet].
func nodeOf(schedd string) string { return schedd[strings.LastIndexByte(schedd, '@')+1:] }

// scheddsOf counts the schedds of a node, those that are away included.
func (c *cell) scheddsOf(node string) (n int) {
	for name := range c.schedds {
		if nodeOf(name) == node {
			n++
		}
	}
	return n
}

// left ends a schedd's conversation, unless a newer one has replaced it.
func (c *cell) left(now time.Time, name string, mail *mailbox) {
	if s := c.schedds[name]; s != nil && s.mail == mail {
		c.drop(now, s)
	}
}

// drop forgets what a conversation was about. Grants that were not answered lapse by themselves, unless the next conversation tells of them.
func (c *cell) drop(now time.Time, s *schedd) {
	if s.mail != nil {
		s.mail.end(errReplaced)
	}
	s.remember()
	s.mail, s.away, s.requests, s.adBytes = nil, now, map[uint64]*request{}, 0
	c.changed = true
}

// end ends all conversations.
func (c *cell) end(why error) {
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.mail != nil {
			s.mail.end(why)
		}
	}
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
	case *wire.FromSchedd_Demand:
		less, err := s.demands(of.Demand)
		if less {
			c.room(of.Demand.GetQueue())
		}
		return err
	case *wire.FromSchedd_Told:
		s.told, s.ran, c.changed = true, nil, true
	case *wire.FromSchedd_Admit:
		c.admit(now, s, of.Admit)
	case *wire.FromSchedd_Why:
		c.ask(s, of.Why.GetRequest())
	case *wire.FromSchedd_Outcome:
		c.ended(now, s, of.Outcome)
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
