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

// fileSystemDomain is the FileSystemDomain of all nodes: tasks find their files where
// they are.
const fileSystemDomain = "pool"

// scheddNode is a submit node: the production loop of a schedd, and what is around it.
type scheddNode struct {
	*hostNode
	core  *schedd.LoopCore
	files scheddDisk
	jobs  map[uint64]int          // by number: the job of the config
	ended map[uint64]map[int]bool // by number: tasks that have come to their end

	peers         map[string]*startdSession
	leaders       []leaderReport // by manager
	leaderSession *schedd.NegotiatorSession
	leaderStream  *daemonStream // the conversation; nil: there is none
	retry         reconnectBackoff
	sessionBegan  time.Duration // the conversation
	endedEpoch    uint64        // the epoch whose conversation has just ended
	retryTimer    daemonTimer

	writing    *schedd.CommitBatch
	writeFails bool // and it will not succeed
	tick       daemonTimer
	onlyTicks  bool // a tick is all that has happened: in a quiet pool the next one may be a minute later
	delayTick  daemonTimer
}

// startdSession is the upkeep of a session with a startd.
type startdSession struct {
	to         *hostNode
	stream     *daemonStream
	session    *schedd.StartdSession // nil: no welcome was heard yet
	began      time.Duration
	retry      reconnectBackoff
	retryTimer daemonTimer
}

// leaderReport is what one manager says of who leads.
type leaderReport struct {
	stream     *daemonStream
	epoch      uint64
	isLeader   bool
	heard      time.Duration
	retryTimer daemonTimer
	deadline   daemonTimer // until when it is to speak again
}

// scheddDisk is what is on the disk of a schedd, as package schedd/journal has it:
// snapshots, and behind them a log of batches.
type scheddDisk struct {
	snapshots map[uint64][]byte
	lastSeq   uint64
	log       [][]byte
	size      int
	starts    uint64
	// jobs of events that a damage has made unreadable, of which nothing but the length 0
	// stands in the log
	damagedJobs []uint64
	history     map[uint64]bool // jobs in the history, and whether they ended well
	keys        map[string][]roost.JobID
}

func newSchedd(p *Pool, i int) *scheddNode {
	s := &scheddNode{jobs: map[uint64]int{}, ended: map[uint64]map[int]bool{},
		leaders: make([]leaderReport, len(p.managers))}
	s.hostNode = p.newNode(p.similarUnusedName(fmt.Sprintf("schedd%d", i)), s)
	s.files = scheddDisk{snapshots: map[uint64][]byte{}, history: map[uint64]bool{}, keys: map[string][]roost.JobID{}}
	return s
}

func (s *scheddNode) timeOf() schedd.ClockReading {
	return schedd.ClockReading{Now: s.wallTime(), Boot: s.bootTime()}
}

// start reads the disk as journal.Open does.
func (s *scheddNode) start() {
	hit, held := s.repairLog()
	q := queue.New(s.name)
	for _, seq := range slices.Sorted(maps.Keys(s.files.snapshots)) {
		if err := q.RestoreSnapshot(s.files.snapshots[seq]); err != nil {
			panic(fmt.Sprintf("%s: snapshot of job %d: %v", s.name, seq, err))
		}
	}
	q.RaiseLastSeq(s.files.lastSeq)
	for _, batch := range s.files.log {
		for len(batch) > 0 {
			n, k := binary.Uvarint(batch)
			e, err := queue.DecodeEvent(batch[k : k+int(n)])
			if err != nil {
				panic(fmt.Sprintf("%s: an event of its log: %v", s.name, err))
			}
			q.Apply(e)
			batch = batch[k+int(n):]
		}
	}
	s.files.starts++
	var past uint64
	for seq := range s.files.history {
		past = max(past, seq)
	}
	s.reportRecovered(q)
	s.reportDoubted(q, hit, held)
	s.peers, s.leaderSession, s.leaderStream, s.writing, s.writeFails = map[string]*startdSession{},
		nil, nil, nil, false
	s.tick, s.delayTick, s.retryTimer, s.retry, s.endedEpoch = daemonTimer{}, daemonTimer{}, daemonTimer{},
		reconnectBackoff{}, 0
	s.core = schedd.NewCore(s.name, fileSystemDomain, s.pool.cfg.Times.Lease, s.pool.cfg.Times.RenewMax, q,
		s.files.starts, past, s.wallTime(), s)
	s.core.ResumeLogged(s.timeOf())
	for i := range s.leaders {
		s.leaders[i] = leaderReport{}
		s.watchLeader(i)
	}
	s.endTurn()
}

// reportRecovered tells the observer what the disk has.
func (s *scheddNode) reportRecovered(q *queue.Queue) {
	if s.pool.cfg.Observe == nil {
		return
	}
	ids := q.MatchingJobs(queue.JobFilter{})
	for seq := range s.files.history {
		ids = append(ids, roost.JobID{Seq: seq, Host: s.name})
	}
	slices.SortFunc(ids, func(a, b roost.JobID) int { return int(a.Seq) - int(b.Seq) })
	s.pool.observe(audit.Event{Type: audit.Recovered, Node: s.name, Jobs: ids})
}

func (s *scheddNode) stop() {
	if s.writing != nil && s.tornWrite && !s.writeFails {
		s.appendBatch(s.writing) // it was in its place already, and nobody was told
		s.reportCommitted(s.writing)
	}
	s.tornWrite, s.core, s.writing = false, nil, nil
}

// endTurn ends a turn: what follows from it is done, and what is to be written begins to
// be.
func (s *scheddNode) endTurn() {
	m := s.timeOf()
	s.core.RunTurn(m)
	for s.core.HasPendingCalls() {
		s.core.RunTurn(m)
	}
	s.sendToLeader()
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

// sendToLeader sends what is to be said to the leader. It does not wait for the disk.
func (s *scheddNode) sendToLeader() {
	if s.leaderSession == nil {
		return
	}
	for _, m := range s.leaderSession.TakeMessages() {
		s.pool.sendOn(s.leaderStream, 0, m)
	}
}

// startWrite begins to write what waits for the disk, unless that is busy.
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
	takes, ok := time.Duration(0), true
	if len(b.Events()) > 0 || b.Checkpoint() != nil {
		takes, ok = s.writeTime()
	}
	s.writeFails = !ok
	s.scheduleEvent(s.pool.loop.Now()+takes, evDisk, 0, nil)
}

// writeDone takes in that a batch is safe: now what rests on it leaves.
func (s *scheddNode) writeDone(uint64) {
	b := s.writing
	if s.writeFails || s.diskFullUntil > s.pool.loop.Now() && len(b.Events()) > 0 {
		s.killAndRestart() // a log that cannot be written ends the daemon
		return
	}
	if s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterAppend) {
		return
	}
	s.appendBatch(b)
	s.writing = nil
	s.reportCommitted(b)
	if s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterFsync) ||
		hasAttemptEnd(b) && s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterExitRecorded) {
		return
	}
	life := s.daemonLife
	s.core.Committed(b, s.files.size)
	for _, name := range b.Nodes() {
		x := s.peers[name]
		if x == nil || x.session == nil {
			continue
		}
		for _, m := range x.session.TakeMessages() {
			s.pool.sendOn(x.stream, 0, m)
			if m.GetActivate() != nil && s.pool.passFailpoint(s.hostNode, failpoint.ScheddAfterActivate) {
				return
			}
		}
	}
	if s.daemonLife == life {
		s.endTurn()
	}
}

func hasAttemptEnd(b *schedd.CommitBatch) bool {
	return slices.ContainsFunc(b.Events(), func(e queue.JobEvent) bool { return e.Type == queue.Ended })
}

// appendBatch puts a batch on the disk, as journal.Append does.
func (s *scheddNode) appendBatch(b *schedd.CommitBatch) {
	s.appendEvents(b.Events())
	if c := b.Checkpoint(); c != nil {
		for seq, snapshot := range c.Jobs {
			if snapshot == nil {
				delete(s.files.snapshots, seq)
			} else {
				s.files.snapshots[seq] = snapshot
			}
		}
		s.files.lastSeq, s.files.log, s.files.size = c.LastSeq, nil, 0
	}
}

// appendEvents puts events behind the others.
func (s *scheddNode) appendEvents(events []queue.JobEvent) {
	var batch []byte
	for i := range events {
		raw := queue.AppendEvent(nil, &events[i])
		batch = append(binary.AppendUvarint(batch, uint64(len(raw))), raw...)
	}
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

// acceptStream and datagram are of other daemons.
func (s *scheddNode) acceptStream(on *daemonStream, _ any) { s.pool.closeStream(on, 1) }
func (s *scheddNode) handleDatagram(*hostNode, any)        {}

// handleReport takes in what was done meanwhile.
func (s *scheddNode) handleReport(m any) {
	switch m := m.(type) {
	case *schedd.PendingArchive:
		s.core.Archived(s.timeOf(), m)
	case *outputCollected:
		to := s.pool.byName[m.node]
		// it is tried until the attempt is no more
		if s.pool.isCut(s.hostNode, to) || s.pool.isCut(to, s.hostNode) || !to.isUp {
			s.scheduleEvent(s.pool.loop.Now()+maxRetry, evReport, 0, m)
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

// check has the books check themselves.
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

// Archive implements schedd.EffectRunner: the history is another file, and written by the
// time.
func (s *scheddNode) Archive(b *schedd.PendingArchive) {
	b.Each(func(seq uint64, key string) {
		st, _ := s.core.Queue().Status(seq)
		s.files.history[seq] = st.Counts[roost.Completed] == st.Tasks && st.Failed == 0
		if id := (roost.JobID{Seq: seq, Host: s.name}); key != "" && !slices.Contains(s.files.keys[key], id) {
			s.files.keys[key] = append(s.files.keys[key], id)
		}
	})
	s.scheduleEvent(s.pool.loop.Now(), evReport, 0, b)
}

// Collect implements schedd.EffectRunner: the output takes as long as a write, and then
// is here.
func (s *scheddNode) Collect(name string, a roost.AttemptID, exited *wire.Exited) {
	s.scheduleEvent(s.pool.loop.Now()+2*s.pool.messageDelay(s.hostNode, s.pool.byName[name]), evReport, 0,
		&outputCollected{name, a, exited})
}

// outputCollected is output that was brought home.
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
