package schedd

import (
	"bytes"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// steppedSchedd is a schedd that a test turns, and what it has had done.
type steppedSchedd struct {
	testing.TB
	core          *LoopCore
	at            ClockReading
	connected     []string
	archived      []*PendingArchive
	notifiedNodes []string // the nodes that the last batch had words for
}

func (h *steppedSchedd) Connect(node, _ string)                        { h.connected = append(h.connected, node) }
func (h *steppedSchedd) Disconnect(string)                             {}
func (h *steppedSchedd) Collect(string, roost.AttemptID, *wire.Exited) { h.Error("there is no output") }
func (h *steppedSchedd) Past(uint64) (bool, bool)                      { return false, false }
func (h *steppedSchedd) PastKey(string) []roost.JobID                  { return nil }
func (h *steppedSchedd) Archive(b *PendingArchive)                     { h.archived = append(h.archived, b) }
func (h *steppedSchedd) Secret() []byte                                { return make([]byte, 32) }

// commitTurn ends the turn, and commits what it has decided; it returns what the facts
// were.
func (h *steppedSchedd) commitTurn() (what []queue.EventType) {
	h.Helper()
	h.core.RunTurn(h.at)
	h.at.Now, h.at.Boot = h.at.Now.Add(lazyCommitDelay), h.at.Boot+lazyCommitDelay
	b, by, waits := h.core.Batch(h.at.Now)
	if waits {
		h.at.Now, h.at.Boot = by, h.at.Boot+by.Sub(h.at.Now)
		b, _, _ = h.core.Batch(by)
	}
	if b == nil {
		h.Fatal("there is nothing to be written")
	}
	for _, e := range b.Events() {
		what = append(what, e.Type)
	}
	h.core.Committed(b, 0)
	h.notifiedNodes = b.Nodes()
	return what
}

// TestLoopCore steps a schedd from a submission until the job is in the history. What is
// decided leaves only when it is on disk.
func TestLoopCore(t *testing.T) {
	h := &steppedSchedd{TB: t, at: ClockReading{time.Unix(1_000_000, 0), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
	h.core.ResumeLogged(h.at)
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	ad.SetString(roost.AttrFileSystemDomain, "domain")
	var ids []roost.JobID
	who := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	if err := h.core.Submit(h.at, who, "key", []queue.SubmitSpec{{Ad: ad, Count: 1}}, func(all []roost.JobID, _ bool) {
		ids = all
	}); err != nil {
		t.Fatal(err)
	}
	if len(ids) > 0 {
		t.Fatal("the id was told before it was on disk")
	}
	if h.commitTurn(); len(ids) != 1 || ids[0].Seq != 1 || len(h.notifiedNodes) > 0 {
		t.Fatalf("the ids are %v, and something is said to %v", ids, h.notifiedNodes)
	}
	negotiatorSession := h.core.NegotiatorConnected(h.at, 7, "head", "head:1")
	h.core.RunTurn(h.at)
	var request uint64
	for _, m := range negotiatorSession.TakeMessages() {
		if r := m.GetRequest(); r.GetWanted() == 1 && r.GetOwner() == "ada" {
			request = r.GetId()
		}
	}
	h.core.NegotiatorReport(h.at, negotiatorSession, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
		Id: 1, Epoch: 7, Request: request, Node: "n1", Address: "n1",
		Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
	}}})
	h.core.RunTurn(h.at)
	if len(h.connected) != 1 || h.connected[0] != "n1" {
		t.Fatalf("it connected to %v", h.connected)
	}
	v := h.core.SessionOpened(h.at, "n1", &wire.SessionWelcome{Node: "n1", FileSystemDomain: "domain"})
	h.commitTurn()
	if m := v.TakeMessages(); len(m) != 1 || m[0].GetClaim().GetGrant() != 1 || len(h.notifiedNodes) != 1 ||
		h.notifiedNodes[0] != "n1" {
		t.Fatalf("the node was told %v, and %v of it", m, h.notifiedNodes)
	}
	h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{Grant: 1, Epoch: 7,
		Claim: 5, AdSequence: 1}}})
	h.core.RunTurn(h.at)
	if m := v.TakeMessages(); len(m) > 0 {
		t.Fatalf("the node was told %v before the assignment was on disk", m)
	}
	if what := h.commitTurn(); what[0] != queue.Assigned {
		t.Fatalf("it wrote %v", what)
	}
	m := v.TakeMessages()
	a := m[0].GetActivate().GetAttempt()
	if a.GetJob() != 1 || a.GetAttempt() != 1 {
		t.Fatalf("the node was told %v", m)
	}
	h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a}}})
	h.core.StartdReport(h.at, v,
		&wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{Attempt: a, Status: &wire.ExitStatus{}}}})
	h.commitTurn()
	if m := v.TakeMessages(); len(m) != 1 || len(m[0].GetAcknowledge().GetAttempts()) != 1 {
		t.Fatalf("the node was told %v", m)
	}
	h.at.Now, h.at.Boot = h.at.Now.Add(archiveDelay), h.at.Boot+archiveDelay
	h.core.Tick(h.at)
	h.commitTurn()
	if len(h.archived) != 1 {
		t.Fatalf("%d times something was put into the history", len(h.archived))
	}
	h.core.Archived(h.at, h.archived[0])
	h.core.RunTurn(h.at)
	h.at.Now, h.at.Boot = h.at.Now.Add(lazyCommitDelay), h.at.Boot+lazyCommitDelay
	if b, _, waits := h.core.Batch(h.at.Now); b != nil || !waits {
		t.Fatalf("that it left the queue does not wait for company: %v", b)
	}
	if what := h.commitTurn(); what[0] != queue.Purged || h.core.Queue().Len() != 0 {
		t.Fatalf("it wrote %v, and %d jobs are in the queue", what, h.core.Queue().Len())
	}
}

// TestCheckpointWithLaterEvents decides events between a checkpoint and the write of its
// batch. They are not a part of the checkpoint: its snapshots and the events after those
// that it covers must be the queue.
func TestCheckpointWithLaterEvents(t *testing.T) {
	h := &steppedSchedd{TB: t, at: ClockReading{time.Unix(1_000_000, 0), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
	h.core.ResumeLogged(h.at)
	who := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	submit := func(key string) {
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/true")
		ad.SetString(roost.AttrFileSystemDomain, "domain")
		if err := h.core.Submit(h.at, who, key, []queue.SubmitSpec{{Ad: ad, Count: 1}},
			func([]roost.JobID, bool) {}); err != nil {
			t.Fatal(err)
		}
	}
	submit("first")
	h.core.RunTurn(h.at)
	b, _, _ := h.core.Batch(h.at.Now)
	h.core.Committed(b, 10*checkpointBytes)
	submit("second")
	h.core.Tick(h.at)
	submit("third")
	h.core.RunTurn(h.at)
	b, _, _ = h.core.Batch(h.at.Now)
	c, covered := b.Checkpoint()
	if c == nil || len(c.Jobs) != 2 || covered == 0 || covered == len(b.Events()) {
		t.Fatalf("the checkpoint %v covers %d of %d events", c, covered, len(b.Events()))
	}
	got := queue.New("s")
	for _, snapshot := range c.Jobs {
		if err := got.RestoreSnapshot(snapshot); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range b.Events()[covered:] {
		got.Apply(e)
	}
	for seq := uint64(1); seq <= 3; seq++ {
		snapshot, _ := got.Snapshot(seq)
		if want, there := h.core.Queue().Snapshot(seq); !there || !bytes.Equal(snapshot, want) {
			t.Errorf("job %d is not what it was: %x, want %x", seq, snapshot, want)
		}
	}
	h.core.Tick(h.at)
	if h.core.schedd.pending.checkpoint != nil {
		t.Error("a second checkpoint is decided before the first is written")
	}
	h.core.Committed(b, 0)
}

// TestDeferredEvents checks that events that nobody waits for travel with the next batch
// that somebody waits for. They must not wait longer than their delay, nor be more than
// maxDeferredEvents.
func TestDeferredEvents(t *testing.T) {
	h := &steppedSchedd{TB: t, at: ClockReading{time.Unix(1_000_000, 0), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
	h.core.ResumeLogged(h.at)
	s := h.core.schedd
	who := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	submit := func(key string, count int) {
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/true")
		ad.SetString(roost.AttrFileSystemDomain, "domain")
		if err := h.core.Submit(h.at, who, key, []queue.SubmitSpec{{Ad: ad, Count: count}},
			func([]roost.JobID, bool) {}); err != nil {
			t.Fatal(err)
		}
	}
	started := func(index int) {
		task := roost.JobID{Seq: 1, Host: "s"}.Task(index)
		e, a, err := s.queue.AssignNext(h.at.Now, task, "n", "n:1", uint64(index))
		if err != nil {
			t.Fatal(err)
		}
		s.queue.Apply(e)
		s.recordStarted(a)
	}
	submit("first", maxDeferredEvents+1)
	h.commitTurn()
	h.core.RunTurn(h.at)
	started(0)
	if b, by, waits := h.core.Batch(h.at.Now); b != nil || !waits || by.Sub(h.at.Now) != backgroundCommitDelay {
		t.Fatalf("a start: got %v, until %v", b, by)
	}
	submit("second", 1)
	if b, _, _ := h.core.Batch(h.at.Now); b == nil || len(b.Events()) != 2 {
		t.Fatalf("a start and a submission are not one batch: %v", b)
	}
	started(1)
	s.commitEventsLazily() // the same as an end
	if b, by, waits := h.core.Batch(h.at.Now); b != nil || !waits || by.Sub(h.at.Now) != lazyCommitDelay {
		t.Fatalf("a start and an end: got %v, until %v", b, by)
	}
	for index := 2; index <= maxDeferredEvents; index++ {
		started(index)
	}
	if b, _, _ := h.core.Batch(h.at.Now); b == nil {
		t.Fatalf("%d events still wait", len(s.pending.events))
	}
}
