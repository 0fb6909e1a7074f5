package schedd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeCellQueue is the queue of the cell of a pool named "far". Its jobs are all of the
// one user who asks.
type fakeCellQueue struct {
	wire.UnimplementedNeighbourServer
	mu    sync.Mutex
	jobs  []*wire.JobStatus // the newest last
	acts  []string          // what was asked for: the verb and the words
	fault error             // what every call is answered with
	// how many calls still fail as if nobody leads
	leaderless int
}

func (f *fakeCellQueue) add(name, host string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := fmt.Sprintf("%d.far", len(f.jobs)+1)
	f.jobs = append(f.jobs, &wire.JobStatus{Id: id, Name: name, Submitted: time.Now().UnixNano(),
		Ad: fmt.Sprintf("[SubmitHost = %q]", host)})
	return id
}

func (f *fakeCellQueue) setFault(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = err
}

// refusal is what a call is refused with. The caller has locked.
func (f *fakeCellQueue) refusal() error {
	if f.leaderless > 0 {
		f.leaderless--
		return fmt.Errorf("another one leads: %w", roost.Unavailable)
	}
	return f.fault
}

// loseLeader has the next calls fail.
func (f *fakeCellQueue) loseLeader(calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaderless = calls
}

func (f *fakeCellQueue) takeActs() (acts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	acts, f.acts = f.acts, nil
	return acts
}

func (f *fakeCellQueue) Submit(_ context.Context, req *wire.NeighbourSubmit) (*wire.SubmitReply, error) {
	return &wire.SubmitReply{Ids: []string{f.add(req.GetRequest().GetKey(), hostName)}}, nil
}

// find returns the jobs that a word means. The caller has locked.
func (f *fakeCellQueue) find(word string) (found []*wire.JobStatus) {
	for i, job := range f.jobs {
		if word == "all" || word == "@"+job.GetName() || word == job.GetId() || word == "last" && i == len(f.jobs)-1 {
			found = append(found, job)
		}
	}
	return found
}

func (f *fakeCellQueue) Query(q *wire.NeighbourQuery, to grpc.ServerStreamingServer[wire.JobStatus]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refusal(); err != nil {
		return err
	}
	for _, word := range q.GetQuery().GetSelection().GetSelectors() {
		found := f.find(word)
		if len(found) == 0 {
			return fmt.Errorf("%s: %w", word, roost.NotFound)
		}
		for _, job := range found {
			if err := to.Send(job); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fakeCellQueue) Act(_ context.Context, req *wire.NeighbourAct) (*wire.ActReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refusal(); err != nil {
		return nil, err
	}
	words := req.GetAct().GetSelection().GetSelectors()
	f.acts = append(f.acts, req.GetAct().GetVerb().String()+" "+strings.Join(words, " "))
	reply := &wire.ActReply{}
	for _, word := range words {
		found := f.find(word)
		for _, job := range found {
			reply.Results = append(reply.Results, &wire.ActReply_Result{Id: job.GetId()})
		}
		if len(found) == 0 && word != "all" {
			reply.Results = append(reply.Results, &wire.ActReply_Result{Id: word, Error: "there is none",
				Kind: uint32(roost.NotFound)})
		}
	}
	return reply, nil
}

// newCellWordsPool starts a schedd of the pool "far", which has a queue of the cell.
func newCellWordsPool(t *testing.T) (*testPool, *fakeCellQueue) {
	p := newPool(t)
	p.stop()
	at := func(name string) string { return "unix:" + filepath.Join(p.node.Dir, name+".sock") }
	f, h := &fakeCellQueue{}, &fakePeerCollector{ads: make(chan *wire.AdUpdate, 100)}
	h.deltas = []*wire.AdDelta{{Name: "far", Sequence: 1, Started: 1,
		Ad: `[MyType = "Scheduler"; Name = "far"; MyAddress = "` + at("far") + `"]`}}
	serve(t, at("far"), func(s *rpc.Server) { wire.RegisterNeighbourServer(s, f) })
	serve(t, at("collector"), func(s *rpc.Server) { wire.RegisterCollectorServer(s, h) })
	p.node.Pool, p.node.Collectors = "far", []string{at("collector")}
	p.restartKnowing("far")
	return p, f
}

// restartKnowing starts the schedd, and returns when it has heard of a peer.
func (p *testPool) restartKnowing(peer string) {
	p.start()
	for {
		_, err := receive(p.client.QueryPool(p.ctx(), &wire.PoolQuery{Query: &wire.QueryRequest{}, At: peer}))
		if err == nil {
			return
		}
		if p.ctx().Err() != nil {
			p.Fatal(err)
		}
	}
}

// ids lists the jobs that words mean, asked for in both ways.
func (p *testPool) ids(words ...string) (ids []string, err error) {
	sel := &wire.Selection{Selectors: words}
	rows, err := receive(p.client.Query(p.ctx(), &wire.QueryRequest{Selection: sel, History: true}))
	for _, row := range rows {
		ids = append(ids, row.GetId())
	}
	slices.Sort(ids)
	inPool, perr := p.pool("", sel)
	if slices.Sort(inPool); perr == nil && err == nil && !slices.Equal(ids, inPool) {
		p.Errorf("%v: one schedd is asked: %v; all: %v", words, ids, inPool)
	}
	return ids, err
}

func (p *testPool) submitToCell(name string) string {
	p.Helper()
	reply, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: name, Schedd: "@", Jobs: []*wire.JobSpec{{
		Ad: fmt.Sprintf("[Cmd = \"/bin/true\"; Iwd = %q; Transfer = \"never\"]", p.node.Dir), Count: 1}}})
	if err != nil || len(reply.GetIds()) != 1 {
		p.Fatalf("%v, %v", reply, err)
	}
	return reply.GetIds()[0]
}

// TestLastJob checks which job "last" is when a user has submitted to both queues.
func TestLastJob(t *testing.T) {
	p, f := newCellWordsPool(t)
	expect := func(want string) {
		t.Helper()
		got, err := p.ids("last")
		if err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("last is %v, %v; want %s", got, err, want)
		}
	}
	if got, err := p.ids("last"); err == nil || !strings.Contains(err.Error(), "nothing yet") {
		t.Errorf("nothing was submitted: %v, %v", got, err)
	}
	held := "Held = true"
	local := p.submit("a", 1, held).GetIds()[0]
	expect(local)
	cell := p.submitToCell("b")
	expect(cell)
	if r := p.act(wire.ActRequest_HOLD, "last"); r.GetId() != cell || r.GetError() != "" {
		t.Errorf("hold last: %v", r)
	}
	if acts := f.takeActs(); !slices.Equal(acts, []string{"HOLD " + cell}) {
		t.Errorf("the queue of the cell was asked: %v", acts)
	}
	p.stop()
	p.restartKnowing("far") // from here on the times of submission decide
	expect(cell)
	expect(cell)
	local = p.submit("c", 1, held).GetIds()[0]
	expect(local)
	p.stop()
	p.restartKnowing("far")
	expect(local)
	other := f.add("d", "elsewhere")
	p.stop()
	p.restartKnowing("far")
	if got, err := p.ids("last"); err == nil || !strings.Contains(err.Error(), other+", is from another node") {
		t.Errorf("a job from another node is last: %v, %v", got, err)
	}
	f.setFault(fmt.Errorf("nobody leads: %w", roost.Unavailable))
	if got, err := p.ids("last"); err == nil || !strings.Contains(err.Error(), "name it by its id") {
		t.Errorf("the queue of the cell is silent: %v, %v", got, err)
	}
}

// TestNamedJobs checks that "@name" and "all" mean the jobs of a user in both queues.
func TestNamedJobs(t *testing.T) {
	p, f := newCellWordsPool(t)
	cell := p.submitToCell("hub")
	local := p.submit("a", 1, `JobName = "mine"`).GetIds()[0]
	both := []string{p.submit("b", 1, `JobName = "both"`).GetIds()[0], p.submitToCell("both")}
	slices.Sort(both)
	for _, tt := range []struct {
		word string
		want []string
	}{{"@hub", []string{cell}}, {"@mine", []string{local}}, {"@both", both}, {cell, []string{cell}},
		{"@none", nil}} {
		got, err := p.ids(tt.word)
		if !slices.Equal(got, tt.want) || (err != nil) != (len(tt.want) == 0) {
			t.Errorf("%s is %v, %v; want %v", tt.word, got, err, tt.want)
		}
		reply, err := p.client.Act(p.ctx(), &wire.ActRequest{Verb: wire.ActRequest_HOLD,
			Selection: &wire.Selection{Selectors: []string{tt.word}}})
		var acted []string
		for _, r := range reply.GetResults() {
			if r.GetError() == "" {
				acted = append(acted, r.GetId())
			} else if len(tt.want) > 0 {
				t.Errorf("hold %s: %v", tt.word, r)
			}
		}
		if slices.Sort(acted); err != nil || !slices.Equal(acted, tt.want) || len(reply.GetResults()) == 0 {
			t.Errorf("hold %s: %v, %v; want %v", tt.word, reply, err, tt.want)
		}
	}
	f.takeActs()
	reply, err := p.client.Act(p.ctx(), &wire.ActRequest{Verb: wire.ActRequest_RELEASE,
		Selection: &wire.Selection{Selectors: []string{"all"}}})
	if acts := f.takeActs(); err != nil || len(reply.GetResults()) != 4 ||
		!slices.Equal(acts, []string{"RELEASE all"}) {
		t.Errorf("release all: %v, %v; the queue of the cell was asked: %v", reply, err, acts)
	}
	f.setFault(fmt.Errorf("nobody leads: %w", roost.Unavailable))
	if got, err := p.ids("@both"); err != nil || len(got) != 1 {
		t.Errorf("the queue of the cell is silent, and @both is %v, %v", got, err)
	}
	if got, err := p.ids("@hub"); err == nil || !strings.Contains(err.Error(), "name them by their ids") {
		t.Errorf("the queue of the cell is silent, and @hub is %v, %v", got, err)
	}
	reply, err = p.client.Act(p.ctx(), &wire.ActRequest{Verb: wire.ActRequest_HOLD,
		Selection: &wire.Selection{Selectors: []string{"@both"}}})
	if err != nil || len(reply.GetResults()) != 2 || reply.GetResults()[0].GetError() != "" ||
		reply.GetResults()[1].GetId() != "@both" || !strings.Contains(reply.GetResults()[1].GetError(), "far did not") {
		t.Errorf("the queue of the cell is silent, and hold @both gives %v, %v", reply, err)
	}
}

// TestCellFailover checks that the queue of the cell is asked again when nobody leads it
// for a moment.
func TestCellFailover(t *testing.T) {
	p, f := newCellWordsPool(t)
	id := p.submitToCell("hub")
	for _, words := range [][]string{{id}, {"@hub"}, {"last"}} {
		f.loseLeader(3)
		if got, err := p.ids(words...); err != nil || !slices.Equal(got, []string{id}) {
			t.Errorf("%v: %v, %v; want %s", words, got, err, id)
		}
		f.loseLeader(3)
		if r := p.act(wire.ActRequest_HOLD, words[0]); r.GetId() != id || r.GetError() != "" {
			t.Errorf("hold %v: %v", words, r)
		}
	}
	f.loseLeader(0)
	if acts := f.takeActs(); len(acts) != 3 {
		t.Errorf("the queue of the cell was asked: %v", acts)
	}
}
