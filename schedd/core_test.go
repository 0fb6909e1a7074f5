package schedd

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// byHand is a schedd that a test turns, and what it has had done.
type byHand struct {
	*testing.T
	core      *Core
	at        Moment
	connected []string
	buried    []*Burial
	said      []string // the nodes that the last batch had words for
}

func (h *byHand) Connect(node, _ string)                        { h.connected = append(h.connected, node) }
func (h *byHand) Disconnect(string)                             {}
func (h *byHand) Collect(string, roost.AttemptID, *wire.Exited) { h.Error("there is no output") }
func (h *byHand) Past(uint64) (bool, bool)                      { return false, false }
func (h *byHand) PastKey(string) []roost.JobID                  { return nil }
func (h *byHand) Bury(b *Burial)                                { h.buried = append(h.buried, b) }
func (h *byHand) Secret() []byte                                { return make([]byte, 32) }

// write ends the turn, and commits what it has decided; it returns what the facts were.
func (h *byHand) write() (what []queue.What) {
	h.Helper()
	h.core.Turn(h.at)
	h.at.Now, h.at.Boot = h.at.Now.Add(lazyFor), h.at.Boot+lazyFor
	b, _, _ := h.core.Batch(h.at.Now)
	if b == nil {
		h.Fatal("there is nothing to be written")
	}
	for _, e := range b.Events() {
		what = append(what, e.What)
	}
	h.core.Committed(b, 0)
	h.said = b.Nodes()
	return what
}

// TestCore turns a schedd by hand, from a submission until the job is in the history: what is decided leaves when it is on disk.
func TestCore(t *testing.T) {
	h := &byHand{T: t, at: Moment{time.Unix(1_000_000, 0), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
	h.core.Resume(h.at)
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	ad.SetString(roost.AttrFileSystemDomain, "domain")
	var ids []roost.JobID
	who := queue.Submitter{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	if err := h.core.Submit(h.at, who, "key", []queue.Spec{{Ad: ad, Count: 1}}, func(all []roost.JobID, _ bool) { ids = all }); err != nil {
		t.Fatal(err)
	}
	if len(ids) > 0 {
		t.Fatal("the id was told before it was on disk")
	}
	if h.write(); len(ids) != 1 || ids[0].Seq != 1 || len(h.said) > 0 {
		t.Fatalf("the ids are %v, and something is said to %v", ids, h.said)
	}
	talk := h.core.Joined(h.at, 7, "head", "head:1")
	h.core.Turn(h.at)
	var request uint64
	for _, m := range talk.Take() {
		if r := m.GetRequest(); r.GetWanted() == 1 && r.GetOwner() == "ada" {
			request = r.GetId()
		}
	}
	h.core.Advised(h.at, talk, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
		Id: 1, Epoch: 7, Request: request, Node: "n1", Address: "n1", Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
	}}})
	h.core.Turn(h.at)
	if len(h.connected) != 1 || h.connected[0] != "n1" {
		t.Fatalf("it connected to %v", h.connected)
	}
	v := h.core.Opened(h.at, "n1", &wire.SessionWelcome{Node: "n1", FileSystemDomain: "domain"})
	h.write()
	if m := v.Take(); len(m) != 1 || m[0].GetClaim().GetGrant() != 1 || len(h.said) != 1 || h.said[0] != "n1" {
		t.Fatalf("the node was told %v, and %v of it", m, h.said)
	}
	h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{Grant: 1, Epoch: 7, Claim: 5, AdSequence: 1}}})
	h.core.Turn(h.at)
	if m := v.Take(); len(m) > 0 {
		t.Fatalf("the node was told %v before the assignment was on disk", m)
	}
	if what := h.write(); what[0] != queue.Assigned {
		t.Fatalf("it wrote %v", what)
	}
	m := v.Take()
	a := m[0].GetActivate().GetAttempt()
	if a.GetJob() != 1 || a.GetAttempt() != 1 {
		t.Fatalf("the node was told %v", m)
	}
	h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a}}})
	h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{Attempt: a, Status: &wire.ExitStatus{}}}})
	h.write()
	if m := v.Take(); len(m) != 1 || len(m[0].GetAcknowledge().GetAttempts()) != 1 {
		t.Fatalf("the node was told %v", m)
	}
	h.at.Now, h.at.Boot = h.at.Now.Add(retireAfter), h.at.Boot+retireAfter
	h.core.Tick(h.at)
	h.write()
	if len(h.buried) != 1 {
		t.Fatalf("%d times something was put into the history", len(h.buried))
	}
	h.core.Buried(h.at, h.buried[0])
	if what := h.write(); what[0] != queue.Purged || h.core.Queue().Len() != 0 {
		t.Fatalf("it wrote %v, and %d jobs are in the queue", what, h.core.Queue().Len())
	}
}
