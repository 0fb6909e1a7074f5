package schedd

import (
	"fmt"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// setPolicy has the schedd hear a policy.
func (p *testPool) setPolicy(policy *wire.Policy) {
	p.Helper()
	p.asked.mu.Lock()
	p.asked.policy = policy
	p.asked.mu.Unlock()
	p.asked.endStreams()
	receiveNext(p, p.asked.openedEpochs, "a conversation")
}

// TestReservationIsAQueue checks that the name of a reservation is the name of a queue.
// Jobs can be submitted to it, moved into it and moved out of it. When a reservation is
// being deleted its jobs are removed. This includes jobs whose submission was in
// progress, and no other jobs.
func TestReservationIsAQueue(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	names := &wire.Names{Name: []string{"R1", "R2", "work"}}
	queues := []*wire.JobQueue{{Name: "work", Enabled: true, Priority: 3}, {Name: "long", Enabled: true}}
	p.setPolicy(&wire.Policy{Reservations: names, Queues: queues, DefaultQueue: "work"})
	row := func(id string) *wire.JobStatus {
		t.Helper()
		return p.query(&wire.QueryRequest{History: true, Selection: &wire.Selection{Selectors: []string{id}}})[0]
	}
	where := func(id string) string { st := row(id); return st.GetQueue() + "/" + st.GetReservation() }
	id := p.submit("first", 1, "HoldOnSubmit = true").GetIds()[0]
	move := func(to string) *wire.ActReply_Result {
		return p.actWith(&wire.ActRequest{Verb: wire.ActRequest_MOVE, Queue: to,
			Selection: &wire.Selection{Selectors: []string{id}}})
	}
	// The policy comes a moment after the conversation has begun. Each try has a name
	// of its own: before the policy any name is good, and a job may stay in its queue.
	tries := 0
	eventually(t, "the policy", func() bool {
		tries++
		return roost.ErrorKind(move(fmt.Sprint("nowhere", tries)).GetKind()) == roost.NotFound
	})
	for _, step := range []struct{ to, want string }{
		{"R1", "work/R1"}, {"R2", "work/R2"}, {"long", "long/"}, {"R1", "work/R1"}, {"work", "work/"},
		{"R2", "work/R2"}, {"", "work/"}, {"R1", "work/R1"},
	} {
		if r := move(step.to); r.GetError() != "" || where(id) != step.want {
			t.Errorf("moved to %q: it is in %s, want %s; %v", step.to, where(id), step.want, r)
		}
	}
	if r := move("R3"); roost.ErrorKind(r.GetKind()) != roost.NotFound || where(id) != "work/R1" {
		t.Errorf("moved to what is not there: it is in %s, %v", where(id), r)
	}
	direct := p.submit("direct", 1, `HoldOnSubmit = true; Queue = "R1"`).GetIds()[0]
	other := p.submit("other", 1, `HoldOnSubmit = true; Queue = "R2"`).GetIds()[0]
	if got := where(direct) + " " + where(other); got != "work/R1 work/R2" || row(direct).GetPriority() != 3 {
		t.Errorf("submitted to reservations: %s", got)
	}
	if r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ORDER,
		Selection: &wire.Selection{Selectors: []string{direct, other}}}); r.GetError() != "" ||
		where(direct)+where(other) != "work/R2work/R1" {
		t.Errorf("in each other's place: %v, %s and %s", r, where(direct), where(other))
	}

	p.setPolicy(&wire.Policy{Reservations: names, Queues: queues, DefaultQueue: "work", Deleting: []string{"R1"}})
	eventually(t, "the jobs go", func() bool { return row(id).GetRemoved() && row(other).GetRemoved() })
	if got := row(id).GetReason(); got != "with reservation R1" {
		t.Errorf("it was removed %q", got)
	}
	late := p.submit("late", 1, `HoldOnSubmit = true; Reservation = "R1"`).GetIds()[0]
	if !row(late).GetRemoved() || row(direct).GetRemoved() {
		t.Errorf("of what was deleted: %v; of another: %v", row(late), row(direct))
	}
}
