package pool

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// managerNode is a central manager: a collector, a replica of the log, and the production
// loop of a negotiator.
type managerNode struct {
	*hostNode
	replicaRunner
	index       int
	leaderState leaderState
	proposals   map[uint64]pendingProposal

	store       *adstore.Store
	machineFeed *adstore.TypeFeed
	lease       daemonTimer
	names       *managerNames // nil: they are not simulated

	core           *negotiator.LoopCore
	scheddSessions []*scheddSession
	watchers       []*daemonStream
	leaderReported wire.LeaderNews
	period         daemonTimer
	lastBeat       daemonTimer
	turnAt         daemonTimer
	busyUntil      time.Duration // end of the present cycle
	lastCycle      time.Duration // when the negotiator last looked for work without an event
}

type leaderState struct {
	isLeader bool
	term     uint64
	leaderID int
}

type pendingProposal struct {
	term uint64
	done func(any, error)
}

// scheddSession is a session with a schedd.
type scheddSession struct {
	stream      *daemonStream
	session     *negotiator.ScheddSession
	unconfirmed []*wire.ToSchedd // messages that wait until a majority confirms the leader
	at          time.Duration    // since when they wait
	ended       error
}

func newManager(p *Pool, i int) *managerNode {
	m := &managerNode{index: i}
	m.hostNode = p.newNode(p.similarUnusedName(fmt.Sprintf("manager%d", i)), m)
	m.replicaRunner = replicaRunner{node: m.hostNode, peer: func(i int) *hostNode { return p.managers[i].hostNode }}
	return m
}

func (m *managerNode) start() {
	m.startReplica(m.index, m.pool.cfg.Managers)
	m.leaderState, m.proposals = leaderState{leaderID: -1}, map[uint64]pendingProposal{}
	m.store = adstore.New(adstore.DefaultLimits())
	m.machineFeed, _ = m.store.StartFeed("Machine")
	m.startNames()
	m.core = negotiator.NewCore(m.name, m.name, m)
	if saved := m.pool.cfg.Ledger; saved != nil {
		if err := m.core.Restore(saved); err != nil {
			panic(err) // it was readable before
		}
	}
	m.period, m.lastBeat, m.turnAt, m.lease, m.busyUntil = daemonTimer{}, daemonTimer{}, daemonTimer{},
		daemonTimer{}, 0
	m.setTimer(&m.period, m.pool.loop.Now()+negotiator.CyclePeriod)
	m.runReplica()
	m.runTurn()
}

func (m *managerNode) stop() {
	m.stopReplica()
	m.stopNames()
	m.scheddSessions, m.watchers = nil, nil
	m.core, m.store, m.machineFeed, m.proposals = nil, nil, nil, nil
	m.leaderReported = wire.LeaderNews{}
}

// Propose implements negotiator.ReplicatedLog.
func (m *managerNode) Propose(entry []byte, done func(any, error)) {
	index, ok := m.replica.Propose(m.pool.loop.Now(), entry)
	if !ok {
		done(nil, errNotLeader)
		m.setTimer(&m.turnAt, m.pool.loop.Now())
		return
	}
	m.proposals[index] = pendingProposal{m.leaderState.term, done}
	m.setTimer(&m.elections, m.pool.loop.Now()) // the entry must be written and sent
}

var errNotLeader = errors.New("this replica does not lead")

// runReplica performs what the replica has pending: it writes, sends and applies.
func (m *managerNode) runReplica() {
	m.flushLog()
	for index, e, ok := m.replica.NextCommitted(); ok; index, e, ok = m.replica.NextCommitted() {
		var result any
		if e.Text != nil {
			result = m.core.Apply(index, e.Text)
			m.reportEntry(index, e.Text)
		}
		if w, ok := m.proposals[index]; ok {
			delete(m.proposals, index)
			if w.term == e.Term {
				w.done(result, nil)
			} else {
				w.done(nil, errNotLeader)
			}
			m.setTimer(&m.turnAt, m.pool.loop.Now())
		}
	}
	leads, term, who := m.replica.LeaderState()
	if now := (leaderState{leads, term, who}); now != m.leaderState {
		m.leaderState = now
		if !leads {
			for _, index := range sortedKeys(m.proposals) {
				m.proposals[index].done(nil, errNotLeader)
			}
			clear(m.proposals)
		}
		address := ""
		if who >= 0 {
			address = m.pool.managers[who].name
		}
		m.core.LeadershipChanged(m.wallTime(), leads, term, address)
		m.setTimer(&m.turnAt, m.pool.loop.Now())
	}
	if at, ok := m.replica.NextTick(); ok {
		m.setTimer(&m.elections, at)
	}
	m.sendConfirmed()
}

func (m *managerNode) writeDone(uint64) {
	if m.replicaWritten() {
		m.runReplica()
	}
}

func (m *managerNode) handleDatagram(_ *hostNode, x any) {
	m.replicaRunner.handleDatagram(x)
	m.runReplica()
}

func (m *managerNode) timerFired(a *daemonTimer) {
	switch a {
	case &m.elections:
		m.replica.Tick(m.pool.loop.Now())
		m.runReplica()
		return
	case &m.period:
		if m.canSkipTurn() {
			m.setTimer(&m.period, m.pool.loop.Now()+time.Minute)
			return
		}
		m.setTimer(&m.period, m.pool.loop.Now()+negotiator.CyclePeriod)
		m.lastCycle = m.pool.loop.Now()
		m.core.RunPeriodic(m.wallTime())
	case &m.lastBeat:
		m.reportLeader(true)
		return
	case &m.lease:
		m.store.Expire(m.wallTime())
		m.updateMachines()
		m.updateNames(nil, adstore.OutOfDate)
	default:
		if m.names != nil && a == &m.names.wake {
			m.updateNames(nil, adstore.OutOfDate)
			return
		}
	}
	m.runTurn()
}

// runTurn runs a turn of the negotiator, or defers it to the end of the present cycle.
func (m *managerNode) runTurn() {
	if m.pool.loop.Now() < m.busyUntil {
		m.setTimer(&m.turnAt, m.busyUntil)
		return
	}
	if !m.canSkipTurn() {
		m.setTimer(&m.period, m.pool.loop.Now()+negotiator.CyclePeriod)
	}
	if m.core.ProcessEvents(m.wallTime()) {
		m.busyUntil = m.pool.loop.Now() + m.pool.cfg.Times.Cycle
		if m.passFailpoint(failpoint.NegotiatorBeforeGrant) {
			return
		}
	}
	life := m.daemonLife
	for _, c := range slices.Clone(m.scheddSessions) {
		m.sendToSchedd(c)
		if m.daemonLife != life {
			return
		}
	}
	m.reportLeader(false)
	if at, ok := m.core.NextWake(); ok {
		m.setTimer(&m.turnAt, m.simTime(at))
	}
}

// canSkipTurn reports whether a negotiator in a quiet pool need not look for work by
// itself. It need not if no task has begun or ended since it last did. While tasks wait
// it still looks every minute, since time alone may change its decisions.
func (m *managerNode) canSkipTurn() bool {
	return m.pool.cfg.OnlyOnChange && m.lastCycle > m.pool.lastChange &&
		(m.pool.Sample().Waiting == 0 || m.pool.loop.Now()-m.lastCycle < time.Minute)
}

// passFailpoint passes a failpoint, on the leading manager only.
func (m *managerNode) passFailpoint(name string) bool {
	epoch, _, _ := m.core.LeadingEpoch()
	return epoch != 0 && m.pool.passFailpoint(m.hostNode, name)
}

// sendToSchedd sends the pending messages to a schedd.
func (m *managerNode) sendToSchedd(c *scheddSession) {
	if c.unconfirmed != nil {
		return
	}
	messages, late, ended := c.session.TakeMessages(m.wallTime())
	c.ended = ended
	if late {
		c.unconfirmed, c.at = messages, m.pool.loop.Now()
		m.sendConfirmed()
		return
	}
	m.runCycle(c, messages)
}

// sendConfirmed sends late messages after a majority has confirmed that this manager
// leads. A session whose messages are too late ends.
func (m *managerNode) sendConfirmed() {
	if !slices.ContainsFunc(m.scheddSessions, func(c *scheddSession) bool { return c.unconfirmed != nil }) {
		return
	}
	for _, c := range slices.Clone(m.scheddSessions) {
		switch {
		case c.unconfirmed == nil:
		case m.replica.ConfirmedSince(c.at):
			messages := c.unconfirmed
			c.unconfirmed = nil
			m.runCycle(c, messages)
		case m.pool.loop.Now()-c.at > 2*time.Second:
			c.ended, c.unconfirmed = errNotLeader, nil
			m.runCycle(c, nil)
		}
	}
}

func (m *managerNode) runCycle(c *scheddSession, messages []*wire.ToSchedd) {
	granted := false
	for _, x := range messages {
		if hello := x.GetHello(); hello != nil {
			hello.Name = m.name
		}
		granted = granted || x.GetGrant() != nil
		m.pool.network().sendOn(c.stream, 1, x)
	}
	if granted && m.pool.passFailpoint(m.hostNode, failpoint.NegotiatorAfterGrant) {
		return
	}
	if c.ended != nil {
		m.pool.network().closeStream(c.stream, 1)
		m.sessionEnded(c.stream)
	}
}

// sessionEnded handles the end of a session.
func (m *managerNode) sessionEnded(on *daemonStream) {
	for i, c := range m.scheddSessions {
		if c.stream == on {
			m.scheddSessions = slices.Delete(m.scheddSessions, i, i+1)
			m.core.EndSession(m.wallTime(), c.session)
			return
		}
	}
}

// reportLeader reports the leader to the watching schedds, if it has changed or a beat is
// due.
func (m *managerNode) reportLeader(again bool) {
	epoch, highest, leader := m.core.LeadingEpoch()
	report := &wire.LeaderNews{Name: m.name, Epoch: highest, Leads: epoch != 0, Leader: leader}
	if !again && report.Epoch == m.leaderReported.Epoch && report.Leads == m.leaderReported.Leads &&
		report.Leader == m.leaderReported.Leader {
		return
	}
	m.leaderReported.Epoch, m.leaderReported.Leads, m.leaderReported.Leader = report.Epoch, report.Leads, report.Leader
	for _, on := range m.watchers {
		m.pool.network().sendOn(on, 1, m.leaderMessage(report))
	}
	if !m.pool.cfg.OnlyOnChange {
		m.lastBeat.set = false
		m.setTimer(&m.lastBeat, m.pool.loop.Now()+leaderBeat)
	}
}

// A manager reports every leaderBeat, and promises the next report within leaderTimeout
// (package negotiator).
const (
	leaderBeat    = time.Second
	leaderTimeout = 3 * time.Second
)

func (m *managerNode) leaderMessage(of *wire.LeaderNews) *wire.LeaderNews {
	report := &wire.LeaderNews{Name: m.name, Epoch: of.Epoch, Leads: of.Leads, Leader: of.Leader}
	if !m.pool.cfg.OnlyOnChange {
		report.WithinMs = uint32(leaderTimeout.Milliseconds())
	}
	return report
}

// reportEntry reports a log entry to the observer.
func (m *managerNode) reportEntry(index uint64, text []byte) {
	if m.pool.cfg.Observe == nil {
		return
	}
	_, sum := m.core.Digest()
	e, err := ledger.Decode(text)
	m.core.ViewLedger(func(l *ledger.Ledger) {
		now := l.Now()
		at := now.Sub(m.pool.cfg.StartTime)
		m.pool.observe(audit.Event{Type: audit.Digested, Node: m.name, Entry: index, Digest: digestPrefix(sum),
			Until: at})
		if inForce, _ := l.Epoch(); err != nil || e.Lead == "" && e.Epoch != inForce {
			return // from a deposed leader
		}
		for _, h := range e.Holds {
			m.pool.observe(audit.Event{Type: audit.UsageRateSet, Entry: index, Until: at,
				Submitter: h.Submitter.String(), Amount: h.Cores})
		}
		for _, who := range l.Accountant().Submitters() {
			m.pool.observe(audit.Event{Type: audit.UsageReported, Node: m.name, Entry: index, Until: at,
				Submitter: who.String(), Amount: l.Accountant().CoreSeconds(now, who)})
		}
	})
}

// digestPrefix returns the first eight bytes of a digest.
func digestPrefix(sum []byte) uint64 {
	if len(sum) < sha256.Size {
		return 0
	}
	return binary.BigEndian.Uint64(sum)
}

func (m *managerNode) handleReport(any) {}
func (m *managerNode) check()           {}

func (m *managerNode) failpoints() []string {
	return []string{failpoint.NegotiatorBeforeGrant, failpoint.NegotiatorAfterGrant}
}
