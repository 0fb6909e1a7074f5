package schedd

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestAnotherMachineAnswers checks that an attempt is not over when another machine
// answers in its machine's place. No other attempt begins.
func TestAnotherMachineAnswers(t *testing.T) {
	h := &steppedSchedd{TB: t, at: ClockReading{time.Unix(1_000_000, 0), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
	h.core.ResumeLogged(h.at)
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	ad.SetString(roost.AttrFileSystemDomain, "domain")
	who := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	if err := h.core.Submit(h.at, who, "key", []queue.SubmitSpec{{Ad: ad, Count: 1}},
		func([]roost.JobID, bool) {}); err != nil {
		t.Fatal(err)
	}
	h.commitTurn()
	negotiatorSession := h.core.NegotiatorConnected(h.at, 7, "head", "head:1")
	h.core.RunTurn(h.at)
	var request uint64
	for _, m := range negotiatorSession.TakeMessages() {
		request = max(request, m.GetRequest().GetId())
	}
	h.core.NegotiatorReport(h.at, negotiatorSession, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
		Id: 1, Epoch: 7, Request: request, Node: "n1", Host: "n1", Address: "n1",
		Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
	}}})
	h.core.RunTurn(h.at)
	if wants := h.core.GreetingMessage("n1").GetNode(); wants != "n1" {
		t.Errorf("the greeting wants %q", wants)
	}
	v := h.core.SessionOpened(h.at, "n1", &wire.SessionWelcome{Node: "n1"})
	h.commitTurn()
	h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{Grant: 1, Epoch: 7,
		Claim: 5, AdSequence: 1}}})
	h.commitTurn()
	a := v.TakeMessages()[1].GetActivate().GetAttempt()
	h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a}}})
	h.commitTurn()
	h.core.SessionClosed(h.at, v)
	for _, w := range []*wire.SessionWelcome{{Node: "n3"}, {Node: "N1"}, {}, nil} {
		if h.core.SessionOpened(h.at, "n1", w) != nil {
			t.Errorf("the welcome %v is taken for that of n1", w)
		}
		h.core.RunTurn(h.at)
	}
	if st, ok := h.core.Queue().Status(1); !ok || st.Counts[roost.Running] != 1 {
		t.Errorf("the task is %v", st.Counts)
	}
	for _, m := range negotiatorSession.TakeMessages() {
		request = max(request, m.GetRequest().GetId())
	}
	h.core.NegotiatorReport(h.at, negotiatorSession, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
		Id: 2, Epoch: 7, Request: request, Node: "n1", Host: "n3", Address: "n3",
		Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
	}}})
	h.core.RunTurn(h.at)
	if stated := negotiatorSession.TakeMessages(); len(h.connected) != 1 || len(stated) == 0 ||
		!strings.Contains(stated[0].GetResult().GetReason(), "another node says") {
		t.Errorf("n3 says that it has n1: connections to %v, %v", h.connected, stated)
	}
	if h.core.SessionOpened(h.at, "n1", &wire.SessionWelcome{Node: "n1"}) == nil {
		t.Error("n1 itself is turned away")
	}
	if what := h.commitTurn(); what[0] != queue.Lost {
		t.Errorf("n1 itself says that it is gone: it wrote %v", what)
	}
}
