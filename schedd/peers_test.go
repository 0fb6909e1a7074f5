package schedd

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakePeerCollector is a collector that tells of a few schedds.
type fakePeerCollector struct {
	wire.UnimplementedCollectorServer
	deltas []*wire.AdDelta
	ads    chan *wire.AdUpdate // what it was told
}

func (h *fakePeerCollector) Watch(_ *wire.WatchAds, to grpc.ServerStreamingServer[wire.AdDelta]) error {
	for _, d := range append(h.deltas, &wire.AdDelta{Synced: true}) {
		if err := to.Send(d); err != nil {
			return err
		}
	}
	<-to.Context().Done()
	return nil
}

func (h *fakePeerCollector) Advertise(stream grpc.BidiStreamingServer[wire.AdUpdate, wire.AdAck]) error {
	for {
		u, err := stream.Recv()
		if err != nil {
			return err
		}
		select {
		case h.ads <- u:
		default:
		}
		if err := stream.Send(&wire.AdAck{Sequence: u.GetSequence()}); err != nil {
			return err
		}
	}
}

// fakePeerSchedd is another schedd, with one job.
type fakePeerSchedd struct {
	wire.UnimplementedNeighbourServer
	asked chan *wire.NeighbourQuery
}

func (f *fakePeerSchedd) Query(q *wire.NeighbourQuery, to grpc.ServerStreamingServer[wire.JobStatus]) error {
	f.asked <- q
	for _, id := range []string{"5.far", "6.submit", "7"} { // it may speak for its own jobs only
		if err := to.Send(&wire.JobStatus{Id: id, Submitted: time.Now().UnixNano()}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakePeerSchedd) Why(_ context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	return &wire.WhyReply{Summary: "because of " + req.GetId()}, nil
}

// Waits says more than it may. A job is another schedd's, a band is none, and a reason is
// a text.
func (f *fakePeerSchedd) Waits(context.Context, *wire.WaitsRequest) (*wire.WaitSummary, error) {
	return &wire.WaitSummary{QueuedTasks: 10, RunningTasks: 4,
		Waiting: []*wire.WaitReasonCount{{Reason: "busy", Tasks: 3}, {Reason: strings.Repeat("x", 33), Tasks: 2}},
		Oldest: []*wire.OldestWait{{Band: "batch", Id: "5.far", Since: 7},
			{Band: "production", Id: "6.submit", Since: 1}, {Band: "none", Id: "5.far", Since: 1}}}, nil
}

// newPeerPool starts a schedd that knows two others: one that answers, and one whose
// address nobody listens at.
func newPeerPool(t *testing.T) (*testPool, *fakePeerSchedd, *fakePeerCollector) {
	p := newPool(t)
	p.stop()
	at := func(name string) string { return "unix:" + filepath.Join(p.node.Dir, name+".sock") }
	ad := func(name, address string) *wire.AdDelta {
		return &wire.AdDelta{Name: name, Ad: `[MyType = "Scheduler"; Name = "` + name + `"; MyAddress = "` + address +
			`"]`, Sequence: 1, Started: 1}
	}
	f, h := &fakePeerSchedd{asked: make(chan *wire.NeighbourQuery, 10)},
		&fakePeerCollector{ads: make(chan *wire.AdUpdate, 100)}
	h.deltas = []*wire.AdDelta{ad("far", at("far")), ad("lost", at("lost")), ad("submit", at("far"))}
	serve(t, at("far"), func(s *rpc.Server) { wire.RegisterNeighbourServer(s, f) })
	serve(t, at("herald"), func(s *rpc.Server) { wire.RegisterCollectorServer(s, h) })
	p.node.Collectors, p.node.Schedd.Listen = []string{at("herald")}, []string{at("network")}
	p.start()
	for { // until it has heard of them
		_, err := receive(p.client.QueryPool(p.ctx(), &wire.PoolQuery{Query: &wire.QueryRequest{}, At: "lost"}))
		if err == nil {
			return p, f, h
		}
		if p.ctx().Err() != nil {
			t.Fatal(err)
		}
	}
}

func (p *testPool) pool(at string, sel *wire.Selection) (rows []string, err error) {
	all, err := receive(p.client.QueryPool(p.ctx(), &wire.PoolQuery{Query: &wire.QueryRequest{Selection: sel}, At: at}))
	for _, row := range all {
		if s := row.GetSilent(); s != nil {
			rows = append(rows, s.GetNode()+" is silent")
		} else {
			rows = append(rows, row.GetStatus().GetId())
		}
	}
	return rows, err
}

// TestPoolWaits asks what the tasks of all schedds wait for. One of them does not answer.
func TestPoolWaits(t *testing.T) {
	p, _, _ := newPeerPool(t)
	p.submit("k", 3, "")
	own, err := p.client.Health(p.ctx(), &wire.HealthRequest{Waiting: true})
	if err != nil || own.GetPoolWaits() != nil {
		t.Fatalf("%v, %v", own, err)
	}
	h, err := p.client.Health(p.ctx(), &wire.HealthRequest{Waiting: true, PoolWaits: true})
	if err != nil {
		t.Fatal(err)
	}
	w, tasks := h.GetPoolWaits(), map[string]uint64{}
	for _, r := range w.GetWaiting() {
		tasks[r.GetReason()] = r.GetTasks()
	}
	for _, r := range h.GetWaiting() {
		tasks[r.GetReason()] -= r.GetTasks()
	}
	if tasks["busy"] != 3 || tasks["other"] != 2 {
		t.Errorf("waiting: %v, own %v", w.GetWaiting(), h.GetWaiting())
	}
	if len(w.GetOldest()) != 1 || w.GetOldest()[0].GetId() != "5.far" {
		t.Errorf("the oldest: %v", w.GetOldest())
	}
	if w.GetQueuedTasks() != 10+h.GetQueuedTasks() || w.GetRunningTasks() != 4+h.GetRunningTasks() ||
		h.GetPoolSchedds() != 2 || !slices.Equal(h.GetSilentSchedds(), []string{"lost"}) {
		t.Errorf("got %v", h)
	}
}

func TestQueryPool(t *testing.T) {
	p, f, h := newPeerPool(t)
	own := p.submit("k", 1, "").GetIds()[0]
	for _, test := range []struct {
		at, words, want string
		err             error
	}{
		{"", "", "lost is silent|5.far|" + own, nil},
		{"", "all", "lost is silent|5.far|" + own, nil},
		{"submit", "", own, nil},
		{"far", "", "5.far", nil},
		{"lost", "", "lost is silent", nil},
		{"", "5.far", "5.far", nil},
		{"", "1", own, nil},
		{"", "1 5.far", "5.far|" + own, nil},
		{"", "5.lost", "lost is silent", nil},
		{"", "5.nowhere", "", roost.NotFound},
		{"nowhere", "", "", roost.NotFound},
	} {
		rows, err := p.pool(test.at, &wire.Selection{Selectors: strings.Fields(test.words)})
		if got := strings.Join(rows, "|"); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("at %q %q: got %s, %v; want %s, %v", test.at, test.words, got, err, test.want, test.err)
		}
	}
	for len(f.asked) > 0 {
		if q := <-f.asked; q.GetUser() == "" {
			t.Errorf("it was asked %v, which does not say who wants to know", q)
		}
	}
	if u := receiveNext(t, h.ads, "the ad"); u.GetType() != "Scheduler" ||
		!strings.Contains(u.GetAd(), "network.sock") || !strings.Contains(u.GetAd(), "NumTasks = 0") {
		t.Errorf("it says of itself %v", u)
	}
}

// TestOtherQueues checks what a user can do with a job in the queue of another schedd.
// The schedd answers why this job waits, and nothing else. The local job with the same
// number does not change.
func TestOtherQueues(t *testing.T) {
	p, _, _ := newPeerPool(t)
	p.submit("k", 1, "")
	if reply, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: "1.far"}); err != nil ||
		reply.GetSummary() != "because of 1.far" {
		t.Errorf("got %v, %v", reply, err)
	}
	if _, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: "1.lost"}); !errors.Is(rpc.FromStatus(err),
		roost.Unavailable) {
		t.Errorf("of a schedd that is dead: got %v", err)
	}
	for verb := range wire.ActRequest_Verb_name {
		if verb == 0 {
			continue
		}
		if r := p.act(wire.ActRequest_Verb(verb), "1.far"); roost.ErrorKind(r.GetKind()) != roost.Unauthenticated ||
			!strings.Contains(r.GetError(), "in far's queue") {
			t.Errorf("%v: got %v", wire.ActRequest_Verb(verb), r)
		}
	}
	if _, err := receive(p.client.Logs(p.ctx(), &wire.LogsRequest{Id: "1.far"})); !errors.Is(err,
		roost.Unauthenticated) {
		t.Errorf("logs: got %v", err)
	}
	if st, ok := p.recoveredQueue().Status(1); !ok || st.Counts[roost.Held]+st.Counts[roost.Removed] > 0 {
		t.Errorf("the job here is %v", st.Counts)
	}
}

// TestOtherUsersSeeLittle holds what another schedd is told.
func TestOtherUsersSeeLittle(t *testing.T) {
	p := newPool(t)
	p.submit("k", 1, `Environment = {"TOKEN=hunter2"}; Arguments = {"hunter2"};`)
	conn, err := rpc.Dial(p.node.Schedd.Socket, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	there := wire.NewNeighbourClient(conn)
	owner := p.query(&wire.QueryRequest{})[0].GetOwner()
	for _, test := range []struct {
		user       string
		mine       bool
		constraint string
		want       int
	}{
		{owner, true, "", 1},
		{"somebody", true, "", 0},
		{"somebody", false, "", 1},
		{owner, false, `Arguments[0] == "hunter2"`, 0}, // that it is its owner who asks is not believed
	} {
		rows, err := receive(there.Query(p.ctx(), &wire.NeighbourQuery{User: test.user, Query: &wire.QueryRequest{
			Selection: &wire.Selection{Mine: test.mine, Constraint: test.constraint}, Ads: true,
		}}))
		if err != nil || len(rows) != test.want {
			t.Errorf("%+v: got %d rows, %v", test, len(rows), err)
		}
		for _, row := range rows {
			if !row.GetDiscreet() || strings.Contains(row.String(), "hunter2") ||
				!strings.Contains(row.GetAd(), "/bin/true") {
				t.Errorf("%+v: got %v", test, row)
			}
		}
	}
}
