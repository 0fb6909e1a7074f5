package schedd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestAdmission checks that the schedd asks the leader about submissions where there are
// quotas. A refusal reaches the user and leaves nothing behind. The schedd does not ask
// again about a submission that was already accepted. The leader hears what became of
// all.
func TestAdmission(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	asked := make(chan *wire.Admit, 10)
	refusal := ""
	p.asked.mu.Lock()
	p.asked.policy = &wire.Policy{Admission: true}
	p.asked.admits = func(m *wire.Admit) *wire.Admitted {
		asked <- m
		return &wire.Admitted{Id: m.GetId(), Error: refusal}
	}
	p.asked.mu.Unlock()
	p.asked.endStreams()
	receiveNext(t, p.asked.openedEpochs, "a conversation with quotas")

	// The policy comes a moment after the conversation has begun: submissions before that
	// are asked about later.
	const ad = `RequestCpus = 2; Hold = true; AccountingGroup = "chem"`
	for i := 0; len(asked) == 0; i++ {
		p.submit(fmt.Sprint("early", i), 1, ad)
	}
	early := uint32(len(p.query(&wire.QueryRequest{})))
	p.submit("k", 3, ad)
	m := receiveNext(t, asked, "the question")
	for m.GetAsks()[0].GetTasks() != 3 {
		m = receiveNext(t, asked, "the question, after those about earlier ones")
	}
	if got := m.GetAsks()[0]; got.GetGroup() != "chem" || got.GetTasks() != 3 || got.GetHeld().Vector().CPU != 6000 {
		t.Errorf("asks for %v", got)
	}
	after := receiveNext(t, p.asked.demands, "what was submitted")
	for after.GetSeen() < m.GetId() {
		after = receiveNext(t, p.asked.demands, "what was submitted, after the question")
	}
	if after.GetTasks() != early+3 {
		t.Errorf("tells of %v, after %d tasks and question %d", after, early, m.GetId())
	}
	p.submit("k", 3, ad) // the same again
	if len(asked) > 0 {
		t.Error("a submission that was taken is asked about again")
	}

	refusal = "limit reached: quota of user ann"
	_, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "too much",
		Jobs: []*wire.JobSpec{{Ad: "[Cmd = \"/bin/true\"; " + ad + "]", Count: 9}}})
	if err := rpc.FromStatus(err); !errors.Is(err, roost.Exhausted) || err.Error() != refusal {
		t.Errorf("got %v, want %s", err, refusal)
	}
	m = receiveNext(t, asked, "the question")
	again := receiveNext(t, p.asked.demands, "that nothing has come")
	for again.GetSeen() < m.GetId() {
		again = receiveNext(t, p.asked.demands, "that nothing has come, after the question")
	}
	if again.GetSeen() != m.GetId() || again.GetTasks() != after.GetTasks() {
		t.Errorf("tells of %v after a refusal, and of %v before", again, after)
	}
}

// TestDeferredAdmission checks that a job submitted while no negotiator led is accepted
// and asked about later. If quotas do not allow it, it is held with the numbers. After a
// release the leader is asked again. The job counts for its owner's quota when it is
// admitted, and not before.
func TestDeferredAdmission(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 2})
	receiveNext(t, p.asked.closedEpochs, "its end")
	reply := p.submit("k", 2, `StartAfter = 4000000000`)

	const refusal = "limit reached: quota of user ann in band batch: this asks for 2 cpus at once, and 1 cpu " +
		"of 8 are left"
	asked, refuse := make(chan *wire.Admit, 10), true
	p.asked.mu.Lock()
	p.asked.policy = &wire.Policy{Admission: true}
	p.asked.admits = func(m *wire.Admit) *wire.Admitted {
		asked <- m
		a := &wire.Admitted{Id: m.GetId()}
		if refuse {
			a.Error = refusal
		}
		refuse = false
		return a
	}
	p.asked.mu.Unlock()
	p.asked.reportLeader(&wire.LeaderNews{Epoch: 3, Leads: true, Leader: p.node.Negotiators[0]})
	receiveNext(t, p.asked.openedEpochs, "the conversation with the next leader")
	if m := receiveNext(t, asked, "the question"); m.GetAsks()[0].GetTasks() != 2 {
		t.Errorf("asks for %v", m)
	}
	if st := p.await(reply.GetIds()[0], "held 2"); !strings.Contains(st.GetReason(), refusal) {
		t.Errorf("it is held for %q", st.GetReason())
	}
	for len(p.asked.demands) > 0 {
		if d := <-p.asked.demands; d.GetTasks() > 0 {
			t.Errorf("what nobody has allowed is told as %v", d)
		}
	}
	if r := p.act(wire.ActRequest_RELEASE, reply.GetIds()[0]); r.GetError() != "" {
		t.Fatal(r.GetError())
	}
	m := receiveNext(t, asked, "the question after the release")
	reported := receiveNext(t, p.asked.demands, "what was admitted")
	for reported.GetSeen() < m.GetId() {
		reported = receiveNext(t, p.asked.demands, "what was admitted, after the answer")
	}
	if reported.GetTasks() != 2 {
		t.Errorf("what was admitted is told as %v", reported)
	}
}
