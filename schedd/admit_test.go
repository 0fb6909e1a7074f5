package schedd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestAdmission holds that the leader is asked where there are quotas, that its refusal reaches the user and leaves nothing behind, that a submission
// that was taken already is not asked about again, and that the leader hears what became of all.
func TestAdmission(t *testing.T) {
	p := newPool(t)
	next(t, p.asked.joined, "the first conversation")
	asked := make(chan *wire.Admit, 10)
	refusal := ""
	p.asked.mu.Lock()
	p.asked.policy = &wire.Policy{Admission: true}
	p.asked.admits = func(m *wire.Admit) *wire.Admitted {
		asked <- m
		return &wire.Admitted{Id: m.GetId(), Error: refusal}
	}
	p.asked.mu.Unlock()
	p.asked.hangUp()
	next(t, p.asked.joined, "a conversation with quotas")

	// The policy comes a moment after the conversation has begun: submissions before that are not asked about.
	const ad = `RequestCpus = 2; Hold = true; AccountingGroup = "chem"`
	for i := 0; len(asked) == 0; i++ {
		p.submit(fmt.Sprint("early", i), 1, ad)
	}
	for len(asked) > 0 {
		<-asked
	}
	told := next(t, p.asked.demands, "what was submitted")
	for told.GetSeen() == 0 {
		told = next(t, p.asked.demands, "what was submitted, after the question")
	}

	p.submit("k", 3, ad)
	m := next(t, asked, "the question")
	if got := m.GetAsks()[0]; got.GetGroup() != "chem" || got.GetTasks() != 3 || got.GetHeld().Vector().CPU != 6000 {
		t.Errorf("asks for %v", got)
	}
	after := next(t, p.asked.demands, "what was submitted")
	if after.GetSeen() != m.GetId() || after.GetTasks() != told.GetTasks()+3 {
		t.Errorf("tells of %v, after %v and question %d", after, told, m.GetId())
	}
	p.submit("k", 3, ad) // the same again
	if len(asked) > 0 {
		t.Error("a submission that was taken is asked about again")
	}

	refusal = "limit reached: quota of user ann"
	_, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "too much", Jobs: []*wire.JobSpec{{Ad: "[Cmd = \"/bin/true\"; " + ad + "]", Count: 9}}})
	if err := rpc.FromStatus(err); !errors.Is(err, roost.Exhausted) || err.Error() != refusal {
		t.Errorf("got %v, want %s", err, refusal)
	}
	m = next(t, asked, "the question")
	again := next(t, p.asked.demands, "that nothing has come")
	if again.GetSeen() != m.GetId() || again.GetTasks() != after.GetTasks() {
		t.Errorf("tells of %v after a refusal, and of %v before", again, after)
	}
}
