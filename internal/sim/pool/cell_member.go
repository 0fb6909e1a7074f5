package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/schedd/queue"
)

// cellMember is a member of the cell's queue. It has a replica of the log, the journal
// made from that, and the production loop of a schedd while it leads. It does what
// package schedd/cellqueue does. The journal is read from the log again at each start; in
// the daemon it is on the disk, and lacks nothing that the log has.
type cellMember struct {
	scheddNode // its core is nil while the member follows
	cell       *cellQueue
	index      int
	log        replicaRunner

	leaderState     leaderState
	lastIncarnation uint64
	nextBatch       uint64       // number of the next batch of the journal
	follower        *queue.Queue // nil: it leads
	proposed        uint64       // index of the entry with the batch that is written; 0: none
	confirmSince    time.Duration
	confirming      bool // the batch that is written waits for a word that this member leads
	checkedTurn     uint64
}

// incarnationsOfTerm is that of package schedd/cellqueue.
const incarnationsOfTerm = 1 << 8

func newCellMember(p *Pool, c *cellQueue, i int) *cellMember {
	m := &cellMember{cell: c, index: i}
	m.scheddNode = scheddNode{jobReporter: &c.jobReporter, leaders: make([]leaderReport, len(p.managers)),
		files: newScheddDisk(), replicate: m.commitBatch}
	m.hostNode = p.newNode(p.similarUnusedName(fmt.Sprintf("member%d", i)), m)
	m.log = replicaRunner{node: m.hostNode, peer: func(i int) *hostNode { return c.members[i].hostNode }}
	return m
}

func (m *cellMember) start() {
	m.log.startReplica(m.index, len(m.cell.members))
	m.leaderState = leaderState{leaderID: -1}
	m.files, m.nextBatch, m.follower = newScheddDisk(), 0, queue.New(cellQueueName)
	m.runReplica()
}

func (m *cellMember) stop() {
	m.log.stopReplica()
	m.core, m.writing, m.follower, m.proposed, m.confirming = nil, nil, nil, 0, false
}

// runReplica performs what the replica has pending, and follows who leads.
func (m *cellMember) runReplica() {
	m.log.flushLog()
	for index, e, ok := m.log.replica.NextCommitted(); ok; index, e, ok = m.log.replica.NextCommitted() {
		if e.Text != nil {
			m.applyEntry(index, e.Text)
		}
	}
	leads, term, who := m.log.replica.LeaderState()
	if now := (leaderState{leads, term, who}); now != m.leaderState {
		was := m.leaderState
		m.leaderState = now
		if was.isLeader && (!leads || term != was.term) {
			m.stepDown()
		}
		if leads && m.core == nil {
			m.stepUp(term)
		}
	}
	if at, ok := m.log.replica.NextTick(); ok {
		m.setTimer(&m.log.elections, at)
	}
	if m.confirming && m.log.replica.ConfirmedSince(m.confirmSince) {
		m.batchDone()
	}
}

// applyEntry adds a committed batch to the journal.
func (m *cellMember) applyEntry(index uint64, text []byte) {
	number, batch := decodeEntry(text)
	if number != m.nextBatch {
		return // of a schedd that had another batch before it
	}
	m.nextBatch++
	events := decodeBatch(batch)
	m.cell.observeBatch(number, events)
	if m.core != nil {
		if index != m.proposed {
			panic(fmt.Sprintf("%s leads, and batch %d is in entry %d, not in its own %d", m.name, number, index,
				m.proposed))
		}
		m.batchDone()
		return
	}
	m.appendEncoded(batch)
	for i := range events {
		if seq := events[i].Job; events[i].Type == queue.Purged {
			key, _ := m.follower.SubmitKey(seq)
			m.archiveJob(m.follower, seq, key)
		}
		m.follower.Apply(events[i])
	}
	if m.pool.cfg.SelfCheck {
		m.follower.Check()
	}
	m.cell.reportState(m, number, events)
}

// stepUp starts the schedd that acts for the queue.
func (m *cellMember) stepUp(term uint64) {
	m.lastIncarnation = max(m.lastIncarnation+1, term*incarnationsOfTerm)
	m.files.starts = m.lastIncarnation
	m.cell.coreCount++
	m.coreLife, m.follower = m.cell.coreCount, nil
	q := m.readQueue()
	m.reportRecovered(q)
	m.startCore(q)
}

// stepDown ends the schedd, and follows.
func (m *cellMember) stepDown() {
	m.core, m.writing, m.proposed, m.confirming = nil, nil, 0, false
	for _, serial := range sortedKeys(m.streams) {
		m.pool.network().closeStream(m.streams[serial], 0)
	}
	m.follower = m.readQueue()
}

// commitBatch has a batch committed by the members, or has them confirm that this one
// leads.
func (m *cellMember) commitBatch(b *schedd.CommitBatch) {
	now := m.pool.loop.Now()
	switch {
	case len(b.Events()) > 0:
		index, ok := m.log.replica.Propose(now, encodeEntry(m.nextBatch, b.Events()))
		if !ok {
			panic(m.name + " has a schedd, and its replica does not lead")
		}
		m.proposed = index
	case b.NeedsConfirmation():
		m.confirming, m.confirmSince = true, now
		m.log.replica.Beat(now)
	default:
		m.confirming, m.confirmSince = true, 0
	}
	m.setTimer(&m.log.elections, now)
}

// batchDone handles a batch that is committed, or with which this member was confirmed.
func (m *cellMember) batchDone() {
	b := m.writing
	m.writing, m.proposed, m.confirming = nil, 0, false
	if m.pool.passFailpoint(m.hostNode, failpoint.ScheddAfterAppend) {
		return
	}
	m.appendBatch(b)
	m.finishBatch(b)
}

func (m *cellMember) writeDone(uint64) {
	if m.log.replicaWritten() {
		m.runReplica()
	}
}

func (m *cellMember) handleDatagram(_ *hostNode, x any) {
	m.log.handleDatagram(x)
	m.runReplica()
}

func (m *cellMember) timerFired(a *daemonTimer) {
	switch {
	case a == &m.log.elections:
		m.log.replica.Tick(m.pool.loop.Now())
		m.runReplica()
	case m.core != nil:
		m.scheddNode.timerFired(a)
	}
}

func (m *cellMember) handleReport(x any) {
	if m.core != nil {
		m.scheddNode.handleReport(x)
	}
}

// check runs the self-checks of the cores if the queue may have changed. Most events are
// heartbeats.
func (m *cellMember) check() {
	if m.core != nil && m.checkedTurn != m.turns {
		m.checkedTurn = m.turns
		m.scheddNode.check()
	}
}
