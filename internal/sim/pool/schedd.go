package pool

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/schedd/queue"
)

// domain is the FileSystemDomain of all nodes: tasks find their files where they are.
const domain = "pool"

// scheddNode is a submit node: the production loop of a schedd, and what is around it.
type scheddNode struct {
	*node
	core  *schedd.Core
	files scheddDisk
	jobs  map[uint64]int          // by number: the job of the config
	ended map[uint64]map[int]bool // by number: tasks that have come to their end

	peers    map[string]*peer
	leaders  []sighting // by manager
	talk     *schedd.Talk
	with     *stream // the conversation; nil: there is none
	retry    backoff
	began    time.Duration // the conversation
	unwanted uint64        // the epoch whose conversation has just ended
	again    alarm

	writing *schedd.Batch
	doomed  bool // and it will not succeed
	tick    alarm
	calm    bool // a tick is all that has happened: in a quiet pool the next one may be a minute later
	lazy    alarm
}

// peer is the upkeep of a session with a startd.
type peer struct {
	to      *node
	on      *stream
	session *schedd.Session // nil: no welcome was heard yet
	began   time.Duration
	retry   backoff
	again   alarm
}

// sighting is what one manager says of who leads.
type sighting struct {
	on      *stream
	epoch   uint64
	leads   bool
	heard   time.Duration
	again   alarm
	patient alarm // until when it is to speak again
}

// scheddDisk is what is on the disk of a schedd, as package schedd/journal has it: snapshots, and behind them a log of batches.
type scheddDisk struct {
	snapshots map[uint64][]byte
	last      uint64
	log       [][]byte
	size      int
	starts    uint64
	hit       []uint64        // jobs of events that a damage has made unreadable, of which nothing but the length 0 stands in the log
	past      map[uint64]bool // jobs in the history, and whether they ended well
	keys      map[string][]roost.JobID
}

func newSchedd(p *Pool, i int) *scheddNode {
	s := &scheddNode{jobs: map[uint64]int{}, ended: map[uint64]map[int]bool{}, leaders: make([]sighting, len(p.managers))}
	s.node = p.newNode(p.unlike(fmt.Sprintf("schedd%d", i)), s)
	s.files = scheddDisk{snapshots: map[uint64][]byte{}, past: map[uint64]bool{}, keys: map[string][]roost.JobID{}}
	return s
}

func (s *scheddNode) moment() schedd.Moment { return schedd.Moment{Now: s.now(), Boot: s.boot()} }

// start reads the disk as journal.Open does.
func (s *scheddNode) start() {
	hit, held := s.repair()
	q := queue.New(s.name)
	for _, seq := range slices.Sorted(maps.Keys(s.files.snapshots)) {
		if err := q.Restore(s.files.snapshots[seq]); err != nil {
			panic(fmt.Sprintf("%s: snapshot of job %d: %v", s.name, seq, err))
		}
	}
	q.Resume(s.files.last)
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
	for seq := range s.files.past {
		past = max(past, seq)
	}
	s.recovered(q)
	s.doubted(q, hit, held)
	s.peers, s.talk, s.with, s.writing, s.doomed = map[string]*peer{}, nil, nil, nil, false
	s.tick, s.lazy, s.again, s.retry, s.unwanted = alarm{}, alarm{}, alarm{}, backoff{}, 0
	s.core = schedd.NewCore(s.name, domain, s.p.cfg.Times.Lease, s.p.cfg.Times.Renew, q, s.files.starts, past, s.now(), s)
	s.core.Resume(s.moment())
	for i := range s.leaders {
		s.leaders[i] = sighting{}
		s.watch(i)
	}
	s.turn()
}

// recovered tells the observer what the disk has.
func (s *scheddNode) recovered(q *queue.Queue) {
	if s.p.cfg.Observe == nil {
		return
	}
	ids := q.Match(queue.Filter{})
	for seq := range s.files.past {
		ids = append(ids, roost.JobID{Seq: seq, Host: s.name})
	}
	slices.SortFunc(ids, func(a, b roost.JobID) int { return int(a.Seq) - int(b.Seq) })
	s.p.see(audit.Seen{What: audit.Recovered, Node: s.name, Jobs: ids})
}

func (s *scheddNode) stop() {
	if s.writing != nil && s.torn && !s.doomed {
		s.append(s.writing) // it was in its place already, and nobody was told
		s.committed(s.writing)
	}
	s.torn, s.core, s.writing = false, nil, nil
}

// turn ends a turn: what follows from it is done, and what is to be written begins to be.
func (s *scheddNode) turn() {
	m := s.moment()
	s.core.Turn(m)
	for s.core.Restless() {
		s.core.Turn(m)
	}
	s.say()
	s.write()
	most := time.Duration(0)
	if s.calm {
		most = time.Minute
	}
	now := s.p.k.Now()
	if at := now + s.core.Wait(m, most); s.core.Stirred() || !s.tick.set || s.tick.at > now+time.Second && !s.calm {
		s.alarm(&s.tick, at)
	}
	s.calm = false
}

// say sends what is to be said to the leader. It does not wait for the disk.
func (s *scheddNode) say() {
	if s.talk == nil {
		return
	}
	for _, m := range s.talk.Take() {
		s.p.send(s.with, 0, m)
	}
}

// write begins to write what waits for the disk, unless that is busy.
func (s *scheddNode) write() {
	if s.writing != nil {
		return
	}
	b, by, waits := s.core.Batch(s.now())
	if waits {
		s.alarm(&s.lazy, s.truth(by))
	}
	if b == nil {
		return
	}
	if s.p.point(s.node, fault.ScheddBeforeAppend) {
		return
	}
	s.writing = b
	takes, ok := time.Duration(0), true
	if len(b.Events()) > 0 || b.Checkpoint() != nil {
		takes, ok = s.flush()
	}
	s.doomed = !ok
	s.plan(s.p.k.Now()+takes, evDisk, 0, nil)
}

// disk takes in that a batch is safe: now what rests on it leaves.
func (s *scheddNode) disk(uint64) {
	b := s.writing
	if s.doomed || s.full > s.p.k.Now() && len(b.Events()) > 0 {
		s.fail() // a log that cannot be written ends the daemon
		return
	}
	if s.p.point(s.node, fault.ScheddAfterAppend) {
		return
	}
	s.append(b)
	s.writing = nil
	s.committed(b)
	if s.p.point(s.node, fault.ScheddAfterFsync) || hasEnd(b) && s.p.point(s.node, fault.ScheddExitRecorded) {
		return
	}
	life := s.life
	s.core.Committed(b, s.files.size)
	for _, name := range b.Nodes() {
		x := s.peers[name]
		if x == nil || x.session == nil {
			continue
		}
		for _, m := range x.session.Take() {
			s.p.send(x.on, 0, m)
			if m.GetActivate() != nil && s.p.point(s.node, fault.ScheddAfterActivate) {
				return
			}
		}
	}
	if s.life == life {
		s.turn()
	}
}

func hasEnd(b *schedd.Batch) bool {
	return slices.ContainsFunc(b.Events(), func(e queue.Event) bool { return e.What == queue.Ended })
}

// append puts a batch on the disk, as journal.Append does.
func (s *scheddNode) append(b *schedd.Batch) {
	s.log(b.Events())
	if c := b.Checkpoint(); c != nil {
		for seq, snapshot := range c.Jobs {
			if snapshot == nil {
				delete(s.files.snapshots, seq)
			} else {
				s.files.snapshots[seq] = snapshot
			}
		}
		s.files.last, s.files.log, s.files.size = c.LastSeq, nil, 0
	}
}

// log puts events behind the others.
func (s *scheddNode) log(events []queue.Event) {
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

func (s *scheddNode) alarmed(a *alarm) {
	switch a {
	case &s.tick:
		s.calm = s.p.cfg.Quiet
		s.core.Tick(s.moment())
		s.turn()
	case &s.lazy:
		s.write()
	case &s.again:
		s.follow()
	default:
		s.reconnect(a)
	}
}

// accept and datagram are of other daemons.
func (s *scheddNode) accept(on *stream, _ any) { s.p.hang(on, 1) }
func (s *scheddNode) datagram(*node, any)      {}

// news takes in what was done meanwhile.
func (s *scheddNode) news(m any) {
	switch m := m.(type) {
	case *schedd.Burial:
		s.core.Buried(s.moment(), m)
	case *collected:
		to := s.p.byName[m.node]
		if s.p.isCut(s.node, to) || s.p.isCut(to, s.node) || !to.up { // it is tried until the attempt is no more
			s.plan(s.p.k.Now()+lastRetry, evNews, 0, m)
			return
		}
		s.stored(m.attempt, m.exited.GetOutputs())
		if s.p.point(s.node, fault.ScheddOutputCopied) {
			return
		}
		s.core.Collected(s.moment(), m.node, m.attempt, m.exited, nil)
	}
	s.turn()
}

// check has the books check themselves.
func (s *scheddNode) check() {
	s.core.Queue().Check()
	s.core.Dispatch().Check()
}

// Secret implements schedd.Beyond.
func (s *scheddNode) Secret() []byte { return make([]byte, 32) }

// Past implements schedd.Beyond.
func (s *scheddNode) Past(seq uint64) (succeeded, known bool) {
	succeeded, known = s.files.past[seq]
	return succeeded, known
}

// PastKey implements schedd.Beyond.
func (s *scheddNode) PastKey(key string) []roost.JobID { return s.files.keys[key] }

// Bury implements schedd.Beyond: the history is another file, and written by the time.
func (s *scheddNode) Bury(b *schedd.Burial) {
	b.Each(func(seq uint64, key string) {
		st, _ := s.core.Queue().Status(seq)
		s.files.past[seq] = st.Counts[roost.Completed] == st.Tasks && st.Failed == 0
		if id := (roost.JobID{Seq: seq, Host: s.name}); key != "" && !slices.Contains(s.files.keys[key], id) {
			s.files.keys[key] = append(s.files.keys[key], id)
		}
	})
	s.plan(s.p.k.Now(), evNews, 0, b)
}

// Collect implements schedd.Beyond: the output takes as long as a write, and then is here.
func (s *scheddNode) Collect(name string, a roost.AttemptID, exited *wire.Exited) {
	s.plan(s.p.k.Now()+2*s.p.takes(s.node, s.p.byName[name]), evNews, 0, &collected{name, a, exited})
}

// collected is output that was brought home.
type collected struct {
	node    string
	attempt roost.AttemptID
	exited  *wire.Exited
}

func (s *scheddNode) points() []string {
	return []string{
		fault.ScheddBeforeAppend, fault.ScheddAfterAppend, fault.ScheddAfterFsync, fault.ScheddAfterAnswer, fault.ScheddAfterActivate, fault.ScheddOutputCopied,
		fault.ScheddExitRecorded,
	}
}
