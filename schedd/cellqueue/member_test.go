package cellqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

const queueName = "physics"

// testCell is the members of a queue, in one process.
type testCell struct {
	testing.TB
	dir       string
	addresses []string
	members   []*testMember // nil: it is down
	snapshots replica.SnapshotPolicy
	election  time.Duration // 0: the default
}

// testMember is a running member.
type testMember struct {
	*Member
	server *rpc.Server
	cancel context.CancelFunc
	done   chan error
	lead   replica.LeadershipChange
}

func newTestCell(t testing.TB, n int, snapshots replica.SnapshotPolicy) *testCell {
	return (&testCell{TB: t, members: make([]*testMember, n), snapshots: snapshots}).startAll()
}

func (c *testCell) startAll() *testCell {
	c.dir = c.TempDir()
	n := len(c.members)
	for i := range n {
		c.addresses = append(c.addresses, fmt.Sprintf("unix:%s/%d.sock", c.dir, i))
	}
	for i := range n {
		c.start(i)
	}
	c.Cleanup(func() {
		for i := range c.members {
			c.stop(i)
		}
	})
	return c
}

func (c *testCell) memberDir(i int) string { return filepath.Join(c.dir, strconv.Itoa(i)) }

func (c *testCell) start(i int) {
	c.Helper()
	handler := slog.DiscardHandler
	if os.Getenv("ROOST_DEBUG") != "" {
		handler = slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	log := slog.New(handler)
	m, err := Open(Config{Dir: filepath.Join(c.memberDir(i), "schedd"), Name: queueName, Log: log,
		CheckpointBytes: 4 << 10,
		Replica: replica.Config{Dir: filepath.Join(c.memberDir(i), "replica"), Name: fmt.Sprint("cm", i),
			Address: c.addresses[i], Peers: c.addresses, Log: log, Snapshots: c.snapshots,
			ElectionTimeout: c.election},
	})
	if err != nil {
		c.Fatal(err)
	}
	listener, err := rpc.Listen(c.addresses[i], 0o600)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &testMember{Member: m, server: rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true)),
		cancel: cancel, done: make(chan error, 1)}
	m.Register(r.server)
	go r.server.Serve(listener)
	go func() { r.done <- m.Run(ctx) }()
	c.members[i] = r
}

func (c *testCell) stop(i int) {
	c.Helper()
	r := c.members[i]
	if r == nil {
		return
	}
	c.members[i] = nil
	r.cancel()
	if err := <-r.done; err != nil {
		c.Errorf("member %d: %v", i, err)
	}
	r.server.Stop()
}

// rest is the time between two polls.
func (c *testCell) rest() {
	select {
	case <-c.Context().Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// leader waits for a member that leads.
func (c *testCell) leader() int {
	c.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); c.rest() {
		for i, r := range c.members {
			if r != nil && c.leads(i) {
				return i
			}
		}
	}
	c.Fatal("no member leads")
	return 0
}

// leads reports whether a member leads.
func (c *testCell) leads(i int) bool {
	r := c.members[i]
	select {
	case r.lead = <-r.Replica().Leadership():
	default:
	}
	return r.lead.IsLeader && r.Replica().Verify(c.Context()) == nil
}

// testSchedd is what a schedd does to a queue: it submits, runs and archives jobs.
type testSchedd struct {
	*rand.Rand
	testing.TB
	member  *testMember
	journal *journal.Journal
	queue   *queue.Queue
	history *history.History
	now     time.Time
	keys    *int
	final   []uint64
}

func (c *testCell) lead(i int, seed uint64, keys *int) *testSchedd {
	c.Helper()
	m := c.members[i]
	if err := m.StepUp(); err != nil {
		c.Fatal(err)
	}
	s := &testSchedd{Rand: rand.New(rand.NewPCG(seed, 7)), TB: c.TB, member: m, keys: keys,
		now: time.Unix(1_700_000_000+int64(*keys)*1000, 0)}
	var err error
	s.history = m.History()
	if s.journal, s.queue, err = m.OpenJournal(nil); err != nil {
		c.Fatal(err)
	}
	s.final = s.queue.TakeFinal()
	return s
}

// stepDown ends the schedd.
func (s *testSchedd) stepDown() {
	s.Helper()
	if err := s.member.StepDown(); err != nil {
		s.Fatal(err)
	}
}

var alice = queue.CallerIdentity{User: "alice", UID: 1000, GID: 1000, Host: queueName}

// step does one thing and commits it.
func (s *testSchedd) step() error {
	s.Helper()
	s.now = s.now.Add(time.Second)
	events := s.events()
	for _, e := range events {
		s.queue.Apply(e)
	}
	s.final = append(s.final, s.queue.TakeFinal()...)
	return s.journal.Append(events)
}

func (s *testSchedd) events() []queue.JobEvent {
	s.Helper()
	if live := s.queue.ActiveAttempts(); len(live) > 2 {
		e, err := s.queue.RecordEnded(s.now, live[0].Attempt, &queue.AttemptExit{})
		if err != nil {
			s.Fatal(err)
		}
		return []queue.JobEvent{e}
	}
	if len(s.final) > 3 {
		return s.archive()
	}
	for _, r := range s.queue.Requests() {
		if task, ok := s.queue.NextTask(r); ok && s.IntN(2) == 0 {
			e, _, err := s.queue.AssignNext(s.now, task, "n", "unix:/n", 1)
			if err != nil {
				s.Fatal(err)
			}
			return []queue.JobEvent{e}
		}
	}
	return s.submit()
}

func (s *testSchedd) submit() []queue.JobEvent {
	s.Helper()
	ad, err := classad.Parse(`[Cmd = "/bin/true"]`)
	if err != nil {
		s.Fatal(err)
	}
	*s.keys++
	events, _, _, err := s.queue.SubmitJobs(s.now, alice, fmt.Sprint("k", *s.keys),
		[]queue.SubmitSpec{{Ad: ad, Count: 1 + s.IntN(3)}}, queue.SubmitLimits{})
	if err != nil {
		s.Fatal(err)
	}
	return events
}

// archive moves a job to the history, as a schedd does.
func (s *testSchedd) archive() []queue.JobEvent {
	s.Helper()
	seq := s.final[0]
	s.final = s.final[1:]
	snapshot, _ := s.queue.Snapshot(seq)
	key, _ := s.queue.SubmitKey(seq)
	events, err := s.journal.Events(seq)
	if err == nil {
		err = s.history.Add([]history.JobRecord{{Seq: seq, Key: key, Ended: s.now, Snapshot: snapshot,
			Events: events[seq]}})
	}
	if err != nil {
		s.Fatal(err)
	}
	e, ok := s.queue.PurgeJob(s.now, seq)
	if !ok {
		s.Fatalf("job %d cannot leave the queue", seq)
	}
	return []queue.JobEvent{e}
}

// TestFailovers checks that what a leader has committed is on all members. Through many
// failovers and restarts, each job is in the queue or in the history.
func TestFailovers(t *testing.T) {
	for name, snapshots := range map[string]replica.SnapshotPolicy{
		"log": {}, "snapshots": {Entries: 25, Interval: 10 * time.Millisecond, Trailing: 5},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCell(t, 3, snapshots)
			keys := 0
			for round := range uint64(8) {
				i := c.leader()
				s := c.lead(i, round, &keys)
				for range 60 {
					if err := s.step(); err != nil {
						t.Fatal(err)
					}
				}
				s.stepDown()
				if down := c.down(); down >= 0 {
					c.start(down)
				}
				switch round % 3 {
				case 0:
					c.stop(i)
				case 1:
					c.stop((i + 1) % 3)
				}
			}
			if down := c.down(); down >= 0 {
				c.start(down)
			}
			c.checkEqual(c.leader(), keys)
		})
	}
}

func (c *testCell) down() int {
	for i, r := range c.members {
		if r == nil {
			return i
		}
	}
	return -1
}

// checkEqual compares all members with one of them.
func (c *testCell) checkEqual(with, jobs int) {
	c.Helper()
	first := c.members[with]
	next := first.nextBatch()
	for i, r := range c.members {
		for deadline := time.Now().Add(20 * time.Second); r.nextBatch() != next; c.rest() {
			if time.Now().After(deadline) {
				c.Fatalf("member %d is at batch %d of %d", i, r.nextBatch(), next)
			}
		}
		a, b := first.follower, r.follower
		if a.queue.LastSeq() < uint64(jobs)/2 || a.queue.LastSeq() != b.queue.LastSeq() {
			c.Errorf("member %d: the last job is %d, and %d", i, b.queue.LastSeq(), a.queue.LastSeq())
		}
		missing := 0
		for seq := uint64(1); seq <= a.queue.LastSeq(); seq++ {
			x, there := a.queue.Snapshot(seq)
			y, also := b.queue.Snapshot(seq)
			if there != also || string(x) != string(y) {
				c.Errorf("member %d: job %d is not the same", i, seq)
			}
			if _, _, err := r.history.Job(seq); !also && errors.Is(err, roost.NotFound) {
				missing++
			}
		}
		if missing > 0 {
			c.Errorf("member %d: %d of %d jobs are neither in the queue nor in the history", i, missing,
				a.queue.LastSeq())
		}
		b.queue.Check()
	}
}

// TestHistoryRemoval checks that a removal of jobs from the history reaches every member,
// also one that was down.
func TestHistoryRemoval(t *testing.T) {
	c := newTestCell(t, 3, replica.SnapshotPolicy{})
	keys := 0
	with := c.leader()
	s := c.lead(with, 5, &keys)
	for range 120 {
		if err := s.step(); err != nil {
			t.Fatal(err)
		}
	}
	c.stop((with + 1) % 3)
	ended, err := s.history.Recent(time.Unix(0, 0))
	if err != nil || len(ended) < 4 {
		t.Fatalf("%d jobs have ended, %v", len(ended), err)
	}
	if err := s.member.RemoveHistory(ended[1:]...); err != nil {
		t.Fatal(err)
	}
	s.stepDown()
	c.start((with + 1) % 3)
	for i, r := range c.members {
		left := func() []uint64 {
			left, err := r.history.Recent(time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			return left
		}
		for deadline := time.Now().Add(20 * time.Second); !slices.Equal(left(), ended[:1]); c.rest() {
			if time.Now().After(deadline) {
				t.Fatalf("member %d has the jobs %d, not %d alone", i, left(), ended[0])
			}
		}
	}
	if _, found, err := parseRemoval([]byte{removalFormat, 0x80}); !found || !errors.Is(err, roost.Invalid) {
		t.Errorf("an entry that ends in the middle of a number: %v, %v", found, err)
	}
}

// TestLargeSubmissions commits more at once than an entry of the log may have. It is many
// of the largest submissions in one turn of a leader's schedd. A member that is alone
// stays the leader, however long that takes.
func TestLargeSubmissions(t *testing.T) {
	c := newTestCell(t, 1, replica.SnapshotPolicy{})
	with := c.leader()
	keys := 0
	s := c.lead(with, 1, &keys)
	ad, err := classad.Parse(`[Cmd = "/bin/true"; Script = "` + strings.Repeat("x", 3<<20) + `"]`)
	if err != nil {
		t.Fatal(err)
	}
	var turn []queue.JobEvent
	for range 12 {
		keys++
		events, _, _, err := s.queue.SubmitJobs(s.now, alice, fmt.Sprint("k", keys),
			[]queue.SubmitSpec{{Ad: ad, Count: 1}}, queue.SubmitLimits{MaxLog: journal.MaxSubmission})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			s.queue.Apply(e)
		}
		turn = append(turn, events...)
	}
	for rest := turn; len(rest) > 0; {
		n, err := s.journal.AppendPart(rest, nil)
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	s.stepDown()
	c.stop(with)
	c.start(with)
	if q := c.members[c.leader()].follower.queue; q.LastSeq() != uint64(keys) {
		t.Errorf("%d of %d jobs are in the queue", q.LastSeq(), keys)
	}
}

func (m *Member) nextBatch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.journal == nil {
		return 0
	}
	return m.journal.NextBatch()
}
