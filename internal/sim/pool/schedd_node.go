package pool

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/schedd/queue"
)

// fileSystemDomain is the FileSystemDomain of all nodes: tasks find their files in place.
const fileSystemDomain = "pool"

// scheddNode is a submit node: the production loop of a schedd, and its simulated
// surroundings.
type scheddNode struct {
	*hostNode
	*jobReporter
	core     *schedd.LoopCore
	coreLife uint32 // number of the core's life
	turns    uint64 // number of turns of the core
	files    scheddDisk
	// has a batch committed by the members of the cell's queue; nil: the log is on this
	// disk alone
	replicate func(*schedd.CommitBatch)

	peers         map[string]*startdSession
	leaders       []leaderReport // by manager
	leaderSession *schedd.NegotiatorSession
	leaderStream  *daemonStream // the session with the leader; nil: none
	retry         reconnectBackoff
	sessionBegan  time.Duration // start of the session with the leader
	endedEpoch    uint64        // epoch of the leader of the last session
	retryTimer    daemonTimer

	writing    *schedd.CommitBatch
	writeFails bool // the present write will fail
	tick       daemonTimer
	onlyTicks  bool // only ticks have happened: in a quiet pool the next may come a minute later
	delayTick  daemonTimer
}

// startdSession is the connection with a startd.
type startdSession struct {
	to         *hostNode
	stream     *daemonStream
	session    *schedd.StartdSession // nil: no welcome yet
	began      time.Duration
	retry      reconnectBackoff
	retryTimer daemonTimer
}

// leaderReport is what one manager reports about the leader.
type leaderReport struct {
	stream     *daemonStream
	epoch      uint64
	isLeader   bool
	heard      time.Duration
	retryTimer daemonTimer
	deadline   daemonTimer // by when the next report must come
}

// scheddDisk is the disk of a schedd in the form of package schedd/journal. It has
// snapshots, followed by a log of batches.
type scheddDisk struct {
	snapshots map[uint64][]byte
	lastSeq   uint64
	log       [][]byte
	size      int
	starts    uint64
	// jobs with an unreadable event, which is in the log with length 0
	damagedJobs []uint64
	history     map[uint64]bool // by archived job: whether it succeeded
	keys        map[string][]roost.JobID
}

func newSchedd(p *Pool, i int) *scheddNode {
	s := &scheddNode{leaders: make([]leaderReport, len(p.managers)), files: newScheddDisk()}
	s.hostNode = p.newNode(p.similarUnusedName(fmt.Sprintf("schedd%d", i)), s)
	reporter := newJobReporter(p, s.name, func() *queue.Queue { return s.core.Queue() })
	s.jobReporter = &reporter
	return s
}

func newScheddDisk() scheddDisk {
	return scheddDisk{snapshots: map[uint64][]byte{}, history: map[uint64]bool{}, keys: map[string][]roost.JobID{}}
}

func (s *scheddNode) timeOf() schedd.ClockReading {
	return schedd.ClockReading{Now: s.wallTime(), Boot: s.bootTime()}
}

// readQueue reads the disk, as journal.Open does.
func (s *scheddNode) readQueue() *queue.Queue {
	q := queue.New(s.queueName)
	for _, seq := range slices.Sorted(maps.Keys(s.files.snapshots)) {
		if err := q.RestoreSnapshot(s.files.snapshots[seq]); err != nil {
			panic(fmt.Sprintf("%s: snapshot of job %d: %v", s.name, seq, err))
		}
	}
	q.RaiseLastSeq(s.files.lastSeq)
	for _, batch := range s.files.log {
		for _, e := range decodeBatch(batch) {
			q.Apply(e)
		}
	}
	return q
}

// decodeBatch returns the events of a batch of the log.
func decodeBatch(batch []byte) (events []queue.JobEvent) {
	for _, span := range eventSpans(batch) {
		e, err := queue.DecodeEvent(batch[span.body:span.to])
		if err != nil {
			panic(fmt.Sprintf("an event of a job log: %v", err))
		}
		events = append(events, e)
	}
	return events
}

func (s *scheddNode) start() {
	hit, held := s.repairLog()
	q := s.readQueue()
	s.reportRecovered(q)
	s.reportDoubted(q, hit, held)
	s.files.starts++
	s.coreLife = s.daemonLife + 1
	s.startCore(q)
}

// startCore starts the core that acts for the queue.
func (s *scheddNode) startCore(q *queue.Queue) {
	var past uint64
	for seq := range s.files.history {
		past = max(past, seq)
	}
	s.peers, s.leaderSession, s.leaderStream, s.writing, s.writeFails = map[string]*startdSession{},
		nil, nil, nil, false
	s.tick, s.delayTick, s.retryTimer, s.retry, s.endedEpoch = daemonTimer{}, daemonTimer{}, daemonTimer{},
		reconnectBackoff{}, 0
	newCore := schedd.NewCore
	if s.replicate != nil {
		newCore = schedd.NewReplicatedCore
	}
	s.core = newCore(s.queueName, fileSystemDomain, s.pool.cfg.Times.Lease, s.pool.cfg.Times.RenewMax, q,
		s.files.starts, past, s.wallTime(), s)
	s.core.ResumeLogged(s.timeOf())
	for i := range s.leaders {
		s.leaders[i] = leaderReport{}
		s.watchLeader(i)
	}
	s.endTurn()
}

// reportRecovered reports to the observer which jobs the disk has.
func (s *scheddNode) reportRecovered(q *queue.Queue) {
	if s.pool.cfg.Observe == nil {
		return
	}
	ids := q.MatchingJobs(queue.JobFilter{})
	for seq := range s.files.history {
		ids = append(ids, roost.JobID{Seq: seq, Host: s.queueName})
	}
	slices.SortFunc(ids, func(a, b roost.JobID) int { return int(a.Seq) - int(b.Seq) })
	s.pool.observe(audit.Event{Type: audit.Recovered, Node: s.queueName, Jobs: ids})
}

func (s *scheddNode) stop() {
	if s.writing != nil && s.tornWrite && !s.writeFails {
		s.appendBatch(s.writing) // it had reached the disk without a report
		s.reportCommitted(s.writing.Events())
	}
	s.tornWrite, s.core, s.writing = false, nil, nil
}

// endTurn ends a turn: it performs the consequences and begins a write.
func (s *scheddNode) endTurn() {
	m := s.timeOf()
	s.turns++
	s.core.RunTurn(m)
	for s.core.HasPendingCalls() {
		s.core.RunTurn(m)
	}
	s.sendToLeader()
	if s.replicate != nil { // none, unless the core is wrong
		s.sendSessions(slices.Sorted(maps.Keys(s.peers)))
	}
	s.startWrite()
	most := time.Duration(0)
	if s.onlyTicks {
		most = time.Minute
	}
	now := s.pool.loop.Now()
	if at := now + s.core.NextTick(m, most); s.core.BecameIdle() || !s.tick.set || s.tick.at > now+time.Second &&
		!s.onlyTicks {
		s.setTimer(&s.tick, at)
	}
	s.onlyTicks = false
}

// sendToLeader sends the messages to the leader. They do not wait for the disk.
func (s *scheddNode) sendToLeader() {
	if s.leaderSession == nil {
		return
	}
	for _, m := range s.leaderSession.TakeMessages() {
		s.pool.network().sendOn(s.leaderStream, 0, m)
	}
}

// startWrite begins to write the pending batch, unless a write is in progress.
func (s *scheddNode) startWrite() {
	if s.writing != nil {
		return
	}
	b, by, waits := s.core.Batch(s.wallTime())
	if waits {
		s.setTimer(&s.delayTick, s.simTime(by))
	}
	if b == nil {
		return
	}
	if s.pool.passFailpoint(s.hostNode, failpoint.ScheddBeforeAppend) {
		return
	}
	s.writing = b
	if s.replicate != nil {
		s.replicate(b)
		return
	}
	takes, ok := time.Duration(0), true
	if c, _ := b.Checkpoint(); len(b.Events()) > 0 || c != nil {
		takes, ok = s.writeTime()
	}
	s.writeFails = !ok
	s.scheduleEvent(s.pool.loop.Now()+takes, evDisk, 0, nil)
}

// writeDone handles a durable batch and sends what waited for it.
func (s *scheddNode) writeDone(uint64) {
	b := s.writing
	if s.writeFails || s.diskFullUntil > s.pool.loop.Now() && len(b.Events()) > 0 {
		s.killAndRestart() // a failed write to the log ends the daemon
		return
	}
	if s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterAppend) {
		return
	}
	s.appendBatch(b)
	s.writing = nil
	s.reportCommitted(b.Events())
	s.finishBatch(b)
}

// finishBatch does what waited for a durable batch.
func (s *scheddNode) finishBatch(b *schedd.CommitBatch) {
	if s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterFsync) ||
		hasAttemptEnd(b) && s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterExitRecorded) {
		return
	}
	life := s.coreLife
	s.core.Committed(b, s.files.size)
	s.sendSessions(b.Nodes())
	if s.core != nil && s.coreLife == life {
		s.endTurn()
	}
}

// sendSessions sends what the sessions with these nodes have. It may crash.
func (s *scheddNode) sendSessions(nodes []string) {
	for _, name := range nodes {
		x := s.peers[name]
		if x == nil || x.session == nil {
			continue
		}
		for _, m := range x.session.TakeMessages() {
			s.pool.network().sendOn(x.stream, 0, m)
			if m.GetActivate() != nil && s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterActivate) {
				return
			}
		}
	}
}

func hasAttemptEnd(b *schedd.CommitBatch) bool {
	return slices.ContainsFunc(b.Events(), func(e queue.JobEvent) bool { return e.Type == queue.Ended })
}

// appendBatch writes a batch to the disk, as the daemon's committer does.
func (s *scheddNode) appendBatch(b *schedd.CommitBatch) {
	events := b.Events()
	if c, covered := b.Checkpoint(); c != nil {
		events = events[covered:]
		for seq, snapshot := range c.Jobs {
			if snapshot == nil {
				delete(s.files.snapshots, seq)
			} else {
				s.files.snapshots[seq] = snapshot
			}
		}
		s.files.lastSeq, s.files.log, s.files.size = c.LastSeq, nil, 0
	}
	s.appendEvents(events)
}

// appendEvents appends events to the log.
func (s *scheddNode) appendEvents(events []queue.JobEvent) { s.appendEncoded(encodeBatch(nil, events)) }

// encodeBatch appends events to a batch in the form of the log.
func encodeBatch(batch []byte, events []queue.JobEvent) []byte {
	for i := range events {
		raw := queue.AppendEvent(nil, &events[i])
		batch = append(binary.AppendUvarint(batch, uint64(len(raw))), raw...)
	}
	return batch
}

func (s *scheddNode) appendEncoded(batch []byte) {
	if len(batch) > 0 {
		s.files.log = append(s.files.log, batch)
		s.files.size += len(batch)
	}
}

func (s *scheddNode) timerFired(a *daemonTimer) {
	switch a {
	case &s.tick:
		s.onlyTicks = s.pool.cfg.OnlyOnChange
		s.core.Tick(s.timeOf())
		s.endTurn()
	case &s.delayTick:
		s.startWrite()
	case &s.retryTimer:
		s.followLeader()
	default:
		s.reopenSession(a)
	}
}

// acceptStream refuses the stream: no daemon opens one to a schedd.
func (s *scheddNode) acceptStream(on *daemonStream, _ any) { s.pool.network().closeStream(on, 1) }
func (s *scheddNode) handleDatagram(*hostNode, any)        {}

// handleReport handles the result of an effect.
func (s *scheddNode) handleReport(report any) {
	of := report.(*coreReport)
	if of.core != s.core {
		return
	}
	switch m := of.result.(type) {
	case *schedd.PendingArchive:
		s.core.Archived(s.timeOf(), m)
	case *outputCollected:
		to := s.pool.byName[m.node]
		// retry until the attempt no longer exists
		if s.pool.network().isCut(s.hostNode, to) || s.pool.network().isCut(to, s.hostNode) || !to.isUp {
			s.scheduleEvent(s.pool.loop.Now()+maxRetry, evReport, 0, of)
			return
		}
		s.outputStored(m.attempt, m.exited.GetOutputs())
		if s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterOutputCopied) {
			return
		}
		s.core.OutputFetched(s.timeOf(), m.node, m.attempt, m.exited, nil)
	}
	s.endTurn()
}

// check runs the self-checks of the cores.
func (s *scheddNode) check() {
	s.core.Queue().Check()
	s.core.Dispatch().Check()
}

// Secret implements schedd.EffectRunner.
func (s *scheddNode) Secret() []byte { return make([]byte, 32) }

// Past implements schedd.EffectRunner.
func (s *scheddNode) Past(seq uint64) (succeeded, known bool) {
	succeeded, known = s.files.history[seq]
	return succeeded, known
}

// PastKey implements schedd.EffectRunner.
func (s *scheddNode) PastKey(key string) []roost.JobID { return s.files.keys[key] }

// Archive implements schedd.EffectRunner. The history is a separate file, which takes the
// time of a write.
func (s *scheddNode) Archive(b *schedd.PendingArchive) {
	b.Each(func(seq uint64, key string) {
		s.archiveJob(s.core.Queue(), seq, key)
	})
	s.scheduleEvent(s.pool.loop.Now(), evReport, 0, &coreReport{s.core, b})
}

// archiveJob puts a job of a queue into the history.
func (s *scheddNode) archiveJob(q *queue.Queue, seq uint64, key string) {
	st, _ := q.Status(seq)
	s.files.history[seq] = st.Counts[roost.Completed] == st.Tasks && st.Failed == 0
	if id := (roost.JobID{Seq: seq, Host: s.queueName}); key != "" && !slices.Contains(s.files.keys[key], id) {
		s.files.keys[key] = append(s.files.keys[key], id)
	}
}

// Collect implements schedd.EffectRunner. The output arrives after two messages' delay.
func (s *scheddNode) Collect(name string, a roost.AttemptID, exited *wire.Exited) {
	s.scheduleEvent(s.pool.loop.Now()+2*s.pool.network().messageDelay(s.hostNode, s.pool.byName[name]), evReport, 0,
		&coreReport{s.core, &outputCollected{name, a, exited}})
}

// coreReport is the result of an effect of a core. One that has ended since gets none.
type coreReport struct {
	core   *schedd.LoopCore
	result any
}

// outputCollected reports output that has arrived at the submit side.
type outputCollected struct {
	node    string
	attempt roost.AttemptID
	exited  *wire.Exited
}

func (s *scheddNode) failpoints() []string {
	return []string{
		failpoint.ScheddBeforeAppend, failpoint.ScheddAfterAppend, failpoint.ScheddAfterFsync,
		failpoint.ScheddAfterAnswer, failpoint.ScheddAfterActivate, failpoint.ScheddAfterOutputCopied,
		failpoint.ScheddAfterExitRecorded,
	}
}
