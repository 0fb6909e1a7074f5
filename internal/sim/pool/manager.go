package pool

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/consensus"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// managerNode is a central manager: a collector, a replica of the log, and the production loop of a negotiator.
type managerNode struct {
	*node
	index int
	files consensus.Disk

	replica   *consensus.Replica
	leads     leadership
	proposals map[uint64]proposal
	writing   *consensus.Disk
	doomed    bool
	held      []consensus.Message // until what they rest on is written
	elections alarm

	store *adstore.Store
	feed  *adstore.Feed
	lease alarm

	core     *negotiator.Core
	talks    []*conversation
	watchers []*stream
	told     wire.LeaderNews
	period   alarm
	beat     alarm
	due      alarm
	busy     time.Duration // a cycle is under way until then
	looked   time.Duration // when it was told to look by itself last
}

type leadership struct {
	leads bool
	term  uint64
	who   int
}

type proposal struct {
	term uint64
	done func(any, error)
}

// conversation is that with a schedd.
type conversation struct {
	on   *stream
	with *negotiator.Conversation
	late []*wire.ToSchedd // that wait until a majority has said that this manager still leads
	at   time.Duration    // since when
	over error
}

func newManager(p *Pool, i int) *managerNode {
	m := &managerNode{index: i}
	m.node = p.newNode(p.unlike(fmt.Sprintf("manager%d", i)), m)
	return m
}

func (m *managerNode) start() {
	m.replica = consensus.New(m.index, m.p.cfg.Managers, m.files, m.p.k.Now(), m.p.rand)
	m.leads, m.proposals = leadership{who: -1}, map[uint64]proposal{}
	m.store = adstore.New(adstore.DefaultLimits())
	m.feed, _ = m.store.Follow("Machine")
	m.core = negotiator.NewCore(m.name, m.name, m)
	if saved := m.p.cfg.Ledger; saved != nil {
		if err := m.core.Restore(saved); err != nil {
			panic(err) // it was read before
		}
	}
	m.period, m.beat, m.due, m.lease, m.elections, m.busy = alarm{}, alarm{}, alarm{}, alarm{}, alarm{}, 0
	m.alarm(&m.period, m.p.k.Now()+negotiator.Period)
	m.consensus()
	m.turn()
}

func (m *managerNode) stop() {
	if m.writing != nil && m.torn && !m.doomed {
		m.files = *m.writing
	}
	m.torn, m.writing, m.held, m.talks, m.watchers = false, nil, nil, nil, nil
	m.replica, m.core, m.store, m.feed, m.proposals = nil, nil, nil, nil, nil
	m.told = wire.LeaderNews{}
}

// Propose implements negotiator.Log.
func (m *managerNode) Propose(entry []byte, done func(any, error)) {
	index, ok := m.replica.Propose(m.p.k.Now(), entry)
	if !ok {
		done(nil, errDeposed)
		m.alarm(&m.due, m.p.k.Now())
		return
	}
	m.proposals[index] = proposal{m.leads.term, done}
	m.alarm(&m.elections, m.p.k.Now()) // it is to be written, and sent
}

var errDeposed = errors.New("this replica does not lead")

// consensus does what follows from what the replica was told: it writes, sends and applies.
func (m *managerNode) consensus() {
	m.flushLog()
	for index, e, ok := m.replica.Committed(); ok; index, e, ok = m.replica.Committed() {
		var result any
		if e.Text != nil {
			result = m.core.Apply(index, e.Text)
			m.applied(index, e.Text)
		}
		if w, ok := m.proposals[index]; ok {
			delete(m.proposals, index)
			if w.term == e.Term {
				w.done(result, nil)
			} else {
				w.done(nil, errDeposed)
			}
			m.alarm(&m.due, m.p.k.Now())
		}
	}
	leads, term, who := m.replica.Leadership()
	if now := (leadership{leads, term, who}); now != m.leads {
		m.leads = now
		if !leads {
			for _, index := range sorted(m.proposals) {
				m.proposals[index].done(nil, errDeposed)
			}
			clear(m.proposals)
		}
		address := ""
		if who >= 0 {
			address = m.p.managers[who].name
		}
		m.core.Turned(m.now(), leads, term, address)
		m.alarm(&m.due, m.p.k.Now())
	}
	if at, ok := m.replica.Wake(); ok {
		m.alarm(&m.elections, at)
	}
	m.confirm()
}

// flushLog begins to write what is to be written, and sends what waits for nothing.
func (m *managerNode) flushLog() {
	if m.writing != nil {
		return
	}
	disk := m.replica.Write()
	m.held = m.replica.Messages(m.held)
	if disk == nil {
		m.sendHeld()
		return
	}
	takes, ok := m.flush()
	m.writing, m.doomed = disk, !ok
	m.plan(m.p.k.Now()+takes, evDisk, 0, nil)
}

func (m *managerNode) sendHeld() {
	for _, x := range m.held {
		m.p.datagram(m.node, m.p.managers[x.To].node, x)
	}
	m.held = m.held[:0]
}

func (m *managerNode) disk(uint64) {
	if m.doomed {
		m.fail()
		return
	}
	m.files = *m.writing
	m.writing = nil
	m.sendHeld()
	m.replica.Written(&m.files)
	m.consensus()
}

func (m *managerNode) datagram(_ *node, x any) {
	m.replica.Step(m.p.k.Now(), x.(consensus.Message))
	m.consensus()
}

func (m *managerNode) alarmed(a *alarm) {
	switch a {
	case &m.elections:
		m.replica.Tick(m.p.k.Now())
		m.consensus()
		return
	case &m.period:
		if m.idle() {
			m.alarm(&m.period, m.p.k.Now()+time.Minute)
			return
		}
		m.alarm(&m.period, m.p.k.Now()+negotiator.Period)
		m.looked = m.p.k.Now()
		m.core.Periodic(m.now())
	case &m.beat:
		m.tellLeader(true)
		return
	case &m.lease:
		m.store.Expire(m.now())
		m.machines()
	}
	m.turn()
}

// turn has the negotiator do what follows from what it was told, unless a cycle is under way: then that is done after it.
func (m *managerNode) turn() {
	if m.p.k.Now() < m.busy {
		m.alarm(&m.due, m.busy)
		return
	}
	if !m.idle() {
		m.alarm(&m.period, m.p.k.Now()+negotiator.Period)
	}
	if m.core.Turn(m.now()) {
		m.busy = m.p.k.Now() + m.p.cfg.Times.Cycle
		if m.point(fault.NegotiatorBeforeGrant) {
			return
		}
	}
	life := m.life
	for _, c := range slices.Clone(m.talks) {
		m.deliver(c)
		if m.life != life {
			return
		}
	}
	m.tellLeader(false)
	if at, ok := m.core.Wake(); ok {
		m.alarm(&m.due, m.truth(at))
	}
}

// idle reports whether a negotiator in a quiet pool need not look again by itself: nothing has begun or ended since it did. As long as something waits it does so each
// minute all the same, since time alone may change what it may do.
func (m *managerNode) idle() bool {
	return m.p.cfg.Quiet && m.looked > m.p.moved && (m.p.State().Waiting == 0 || m.p.k.Now()-m.looked < time.Minute)
}

// point is passed only by a manager that grants something.
func (m *managerNode) point(name string) bool {
	epoch, _, _ := m.core.Leads()
	return epoch != 0 && m.p.point(m.node, name)
}

// deliver sends a schedd what waits for it.
func (m *managerNode) deliver(c *conversation) {
	if c.late != nil {
		return
	}
	messages, late, ended := c.with.Take(m.now())
	c.over = ended
	if late {
		c.late, c.at = messages, m.p.k.Now()
		m.confirm()
		return
	}
	m.pass(c, messages)
}

// confirm sends what is late when a majority has said that this manager still leads; what is too late ends its conversation.
func (m *managerNode) confirm() {
	if !slices.ContainsFunc(m.talks, func(c *conversation) bool { return c.late != nil }) {
		return
	}
	for _, c := range slices.Clone(m.talks) {
		switch {
		case c.late == nil:
		case m.replica.Confirmed(c.at):
			messages := c.late
			c.late = nil
			m.pass(c, messages)
		case m.p.k.Now()-c.at > 2*time.Second:
			c.over, c.late = errDeposed, nil
			m.pass(c, nil)
		}
	}
}

func (m *managerNode) pass(c *conversation, messages []*wire.ToSchedd) {
	granted := false
	for _, x := range messages {
		if hello := x.GetHello(); hello != nil {
			hello.Name = m.name
		}
		granted = granted || x.GetGrant() != nil
		m.p.send(c.on, 1, x)
	}
	if granted && m.p.point(m.node, fault.NegotiatorAfterGrant) {
		return
	}
	if c.over != nil {
		m.p.hang(c.on, 1)
		m.left(c.on)
	}
}

// left takes in that a conversation is over.
func (m *managerNode) left(on *stream) {
	for i, c := range m.talks {
		if c.on == on {
			m.talks = slices.Delete(m.talks, i, i+1)
			m.core.Leave(m.now(), c.with)
			return
		}
	}
}

// tellLeader tells who watches who leads, if that has changed, or it is time to say so again.
func (m *managerNode) tellLeader(again bool) {
	epoch, highest, leader := m.core.Leads()
	news := &wire.LeaderNews{Name: m.name, Epoch: highest, Leads: epoch != 0, Leader: leader}
	if !again && news.Epoch == m.told.Epoch && news.Leads == m.told.Leads && news.Leader == m.told.Leader {
		return
	}
	m.told.Epoch, m.told.Leads, m.told.Leader = news.Epoch, news.Leads, news.Leader
	for _, on := range m.watchers {
		m.p.send(on, 1, m.leaderNews(news))
	}
	if !m.p.cfg.Quiet {
		m.beat.set = false
		m.alarm(&m.beat, m.p.k.Now()+beat)
	}
}

// A manager speaks every beat, and promises to do so within silence (package negotiator).
const (
	beat    = time.Second
	silence = 3 * time.Second
)

func (m *managerNode) leaderNews(of *wire.LeaderNews) *wire.LeaderNews {
	news := &wire.LeaderNews{Name: m.name, Epoch: of.Epoch, Leads: of.Leads, Leader: of.Leader}
	if !m.p.cfg.Quiet {
		news.WithinMs = uint32(silence.Milliseconds())
	}
	return news
}

// applied tells the observer of an entry.
func (m *managerNode) applied(index uint64, text []byte) {
	if m.p.cfg.Observe == nil {
		return
	}
	_, sum := m.core.Digest()
	e, err := ledger.Decode(text)
	m.core.Look(func(l *ledger.Ledger) {
		now := l.Now()
		at := now.Sub(m.p.cfg.Began)
		m.p.see(audit.Seen{What: audit.Digested, Node: m.name, Entry: index, Digest: short(sum), Until: at})
		if inForce, _ := l.Epoch(); err != nil || e.Lead == "" && e.Epoch != inForce {
			return // of a leader that has been deposed
		}
		for _, h := range e.Holds {
			m.p.see(audit.Seen{What: audit.Rated, Entry: index, Until: at, Who: h.Submitter.String(), Amount: h.Cores})
		}
		for _, who := range l.Book().Submitters() {
			m.p.see(audit.Seen{What: audit.Used, Node: m.name, Entry: index, Until: at, Who: who.String(), Amount: l.Book().Used(now, who)})
		}
	})
}

// short is the first eight bytes of a digest.
func short(sum []byte) uint64 {
	if len(sum) < sha256.Size {
		return 0
	}
	return binary.BigEndian.Uint64(sum)
}

func (m *managerNode) news(any) {}
func (m *managerNode) check()   {}

func (m *managerNode) points() []string {
	return []string{fault.NegotiatorBeforeGrant, fault.NegotiatorAfterGrant}
}
