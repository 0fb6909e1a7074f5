package schedd

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// TestAlter checks that an alteration is on disk when it is answered. A user can alter
// only his own jobs. An alteration that was prepared before another one took effect is
// refused as stale.
func TestAlter(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 2, "HoldOnSubmit = true").GetIds()[0]
	alter := func(a *wire.Alteration) *wire.ActReply_Result {
		return p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ALTER,
			Selection: &wire.Selection{Selectors: []string{id}}, Alteration: a})
	}
	if r := alter(&wire.Alteration{Changes: `[RequestMemory = 2048; Out = undefined]`,
		Hold: "hold"}); r.GetError() != "" {
		t.Fatalf("got %v", r)
	}
	if st, _ := p.recoveredQueue().Status(1); st.Resources.Memory != 2*roost.GiB || st.Counts[roost.Held] != 2 {
		t.Fatalf("on disk it is %+v", st)
	}
	for _, c := range []struct {
		a    *wire.Alteration
		kind roost.ErrorKind
		why  wire.ActReply_Refusal
	}{
		{&wire.Alteration{Changes: `[JobPrio = 5]`}, roost.Stale, 0},
		{&wire.Alteration{Changes: `[JobPrio = `, Basis: 1}, roost.Invalid, 0},
		{&wire.Alteration{Changes: `[JobPrio = 9999]`, Basis: 1}, roost.Invalid, 0},
		{&wire.Alteration{Changes: `[JobPrio = 5]`, Hold: "perhaps", Basis: 1}, roost.Invalid, 0},
		{&wire.Alteration{Changes: `[JobPrio = 5]`, Hold: "release", Basis: 1}, 0, 0},
		{&wire.Alteration{Changes: `[]`, Hold: "release", Basis: 2}, 0, 0},
	} {
		if r := alter(c.a); roost.ErrorKind(r.GetKind()) != c.kind || (r.GetError() != "") != (c.kind != 0) ||
			r.GetRefusal() != c.why {
			t.Errorf("%v: got %v", c.a, r)
		}
	}
	if r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ALTER,
		Selection:  &wire.Selection{Selectors: []string{"1[0]"}},
		Alteration: &wire.Alteration{Changes: "[]", Basis: 2}}); r.GetRefusal() != wire.ActReply_PART {
		t.Errorf("a task by itself: %v", r)
	}
}

// TestMoveJob checks that a job that moves to another queue loses the defaults of the
// previous one.
func TestMoveJob(t *testing.T) {
	policy := &wire.Policy{Queues: []*wire.JobQueue{
		{Name: "work", Enabled: true, Band: "production",
			Default: &wire.Extent{Memory: proto.Int64(1 << 30), WalltimeS: proto.Int64(60)}},
		{Name: "long", Enabled: true, Most: &wire.Extent{WalltimeS: proto.Int64(7200)}},
	}}
	ad, err := classad.Parse(`[Cmd = "/bin/true"; Queue = "work"; Environment = {"A=1", "PBS_QUEUE=work"}]`)
	if err != nil {
		t.Fatal(err)
	}
	q, who := queue.New(hostName), queue.CallerIdentity{User: "ann", UID: 7}
	specs := []queue.SubmitSpec{{Ad: ad, Count: 1}}
	e := &admission.QueueAdmission{Policy: policy, Submitter: who, Groups: func() []string { return nil }}
	if err := e.AdmitJobs(specs); err != nil {
		t.Fatal(err)
	}
	events, ids, _, err := q.SubmitJobs(time.Unix(1000, 0), who, "k", specs, queue.SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	s := &Schedd{queue: q, node: &config.Node{Name: hostName, Schedd: &config.ScheddSettings{}},
		log: slog.New(slog.DiscardHandler), peerSchedds: peers.New(hostName, nil, nil), users: transfer.NewUserAgents()}
	s.assemble()
	out := sendqueue.New[*wire.FromSchedd]()
	s.leader.OnConnected(negotiation.LeaderConnected{Epoch: 1, Name: "n", Out: out})
	s.leader.OnMessage(negotiation.LeaderMessage{Out: out,
		Message: &wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: policy}}})
	s.leader.OnDisconnected(negotiation.LeaderDisconnected{Out: out})
	act := func(req *wire.ActRequest) ([]queue.JobEvent, error) {
		return s.service.DecideVerb(req, queue.TaskSelector{Job: ids[0]}, who, time.Unix(1000, 0))
	}
	move := func(to string) ([]queue.JobEvent, error) {
		return act(&wire.ActRequest{Verb: wire.ActRequest_MOVE, Queue: to})
	}
	alter := func(m *wire.Alteration) ([]queue.JobEvent, error) {
		return act(&wire.ActRequest{Verb: wire.ActRequest_ALTER, Alteration: m})
	}
	if events, err = move("long"); err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	text, _ := q.JobAd(1)
	moved, err := classad.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	holdsNow, _ := classad.ParseExpr(
		`Queue == "long" && Walltime == 7200 && RequestMemory =?= undefined && Band =?= undefined && Environment[1] == "PBS_QUEUE=long"`,
	)
	if holds, ok := classad.Eval(holdsNow, moved, nil, &classad.EvalEnv{}).Bool(); !ok || !holds {
		t.Fatalf("it is %s", text)
	}
	if events, err = move("long"); err != nil ||
		len(events) > 0 {
		t.Fatalf("where it is already: %v, %v", events, err)
	}
	// What it says itself now, it keeps.
	if events, err = alter(&wire.Alteration{Changes: "[Walltime = 100]", Basis: 1}); err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	if events, err = move("work"); err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	if st, _ := q.Status(1); st.Queue != "work" || st.Band != roost.ProductionBand {
		t.Fatalf("it is %+v", st)
	}
	if text, _ = q.JobAd(1); !strings.Contains(text, "Walltime = 100") {
		t.Fatalf("it is %s", text)
	}
	if _, err = alter(&wire.Alteration{Changes: "[Walltime = 100000]", Basis: 3}); err != nil {
		t.Fatal(err) // that queue has no limit
	}
}

// TestLimitSentToNode checks that the node of a running job receives the job's new
// limits. A schedd that was away sends them again.
func TestLimitSentToNode(t *testing.T) {
	p := newPool(t)
	id, a := p.run("Walltime = 100")
	r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ALTER, Selection: &wire.Selection{Selectors: []string{id}},
		Alteration: &wire.Alteration{Changes: "[Walltime = 50]"}})
	if r.GetError() != "" {
		t.Fatalf("got %v", r)
	}
	if m := receiveNext(t, p.startd.limits, "a limit"); m.GetWalltimeNs() != 50e9 ||
		m.GetAttempt().GetJob() != a.GetAttempt().GetJob() {
		t.Fatalf("got %v", m)
	}
	p.stop()
	p.startd.setReportedClaims(&wire.ClaimState{Claim: a.GetClaim(), Attempt: a.GetAttempt(), Grant: a.GetClaim(),
		Epoch: 1, Running: true})
	p.start()
	if m := receiveNext(t, p.startd.limits, "the limit again"); m.GetWalltimeNs() != 50e9 {
		t.Fatalf("got %v", m)
	}
}

// TestAlterAdmission checks that the schedd asks the leader before an alteration that
// requests more. A refused alteration changes nothing. The leader receives the outcome.
func TestAlterAdmission(t *testing.T) {
	p := newPool(t)
	receiveNext(t, p.asked.openedEpochs, "the first conversation")
	asked := make(chan *wire.Admit, 10)
	p.asked.mu.Lock()
	p.asked.policy = &wire.Policy{Admission: true}
	p.asked.admits = func(m *wire.Admit) *wire.Admitted {
		asked <- m
		answer := &wire.Admitted{Id: m.GetId()}
		if m.GetAsks()[0].GetHeld().GetMilliCpu() > 4000 {
			answer.Error = "limit reached: quota of user ann"
		}
		return answer
	}
	p.asked.mu.Unlock()
	p.asked.endStreams()
	receiveNext(t, p.asked.openedEpochs, "a conversation with quotas")
	for i := 0; len(asked) == 0; i++ { // the policy comes a moment after the conversation has begun
		p.submit(fmt.Sprint("early", i), 1, "HoldOnSubmit = true")
	}
	id := p.submit("k", 2, "HoldOnSubmit = true; RequestCpus = 2").GetIds()[0]
	for receiveNext(t, asked, "the question about the job").GetAsks()[0].GetTasks() != 2 {
	}
	alter := func(changes string, basis int64) *wire.ActReply_Result {
		return p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ALTER,
			Selection:  &wire.Selection{Selectors: []string{id}},
			Alteration: &wire.Alteration{Changes: changes, Basis: basis}})
	}
	if r := alter("[RequestCpus = 5; RequestMemory = 10; JobPrio = 3]",
		0); roost.ErrorKind(r.GetKind()) != roost.Exhausted || r.GetError() != "limit reached: quota of user ann" {
		t.Fatalf("got %v", r)
	}
	if m := receiveNext(t, asked, "a question"); m.GetAsks()[0].GetHeld().GetMilliCpu() != 6000 ||
		m.GetAsks()[0].GetHeld().GetMemory() != 0 {
		t.Errorf("asked was for %v", m)
	}
	if st := p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})[0]; st.GetPriority() !=
		0 || st.GetRequest().GetMilliCpu() != 2000 {
		t.Fatalf("it was refused, and the job is %v", st)
	}
	if r := alter("[RequestCpus = 4]", 0); r.GetError() != "" {
		t.Fatalf("got %v", r)
	}
	m := receiveNext(t, asked, "a question")
	demand := receiveNext(t, p.asked.demands, "what is told then")
	for demand.GetSeen() < m.GetId() || demand.GetHeld().GetMilliCpu() < 8000 {
		demand = receiveNext(t, p.asked.demands, "what is told then")
	}
	if r := alter("[RequestCpus = 1]", 1); r.GetError() != "" || len(asked) != 0 {
		t.Fatalf("less: got %v, and %d questions", r, len(asked))
	}
}
