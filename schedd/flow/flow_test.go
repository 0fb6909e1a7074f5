package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// testFlow builds the definition of a flow.
type testFlow struct {
	*Definition
	t        testing.TB
	finished bool
}

func newTestFlow(t testing.TB) *testFlow {
	return &testFlow{&Definition{Graph: graph.New(), Rules: make([]NodeRules, 1), Categories: []int{-1}}, t, false}
}

func (f *testFlow) add(name string, kind graph.NodeKind) graph.NodeID {
	f.t.Helper()
	id, isNew, err := f.Graph.AddNode([]byte(name), kind)
	if err != nil || !isNew {
		f.t.Fatalf("node %s: new %v, %v", name, isNew, err)
	}
	switch kind {
	case graph.FinalNode:
		f.Final, f.HasFinal = id, true
	case graph.ProvisionerNode:
		f.Provisioner, f.HasProvisioner = id, true
	}
	return id
}

// jobs adds nodes of the graph.
func (f *testFlow) jobs(names ...string) (list []graph.NodeID) {
	f.t.Helper()
	for _, name := range names {
		list = append(list, f.add(name, graph.JobNode))
	}
	return list
}

func (f *testFlow) rule(id graph.NodeID, rules NodeRules) {
	f.Graph.Node(id).Settings = uint32(len(f.Rules))
	f.Rules = append(f.Rules, rules)
}

func (f *testFlow) begin(limits Limits) *testRun {
	f.t.Helper()
	if !f.finished {
		f.finished = true
		if cycle := f.Graph.Finish(); cycle != nil {
			f.t.Fatalf("a cycle: %v", cycle)
		}
	}
	return &testRun{Run: New(f.Definition, limits), t: f.t, codes: map[string]int{}}
}

// testRun runs a flow whose parts end with given codes.
type testRun struct {
	*Run
	t     testing.TB
	codes map[string]int // by "NODE PART" or "NODE PART ATTEMPT"; others are 0
	begun []string       // "NODE PART", in order
	open  []PartBegun
}

func (r *testRun) name(id graph.NodeID) string { return r.definition.Graph.Name(id) }

// apply applies an event and checks the invariants.
func (r *testRun) apply(e FlowEvent) {
	r.t.Helper()
	r.Apply(e)
	if err := r.Check(); err != nil {
		r.t.Fatalf("after %T %+v: %v", e, e, err)
	}
}

// start does all that the flow wants to do now.
func (r *testRun) start() {
	r.t.Helper()
	for {
		e := r.Next()
		switch e := e.(type) {
		case nil:
			return
		case PartBegun:
			r.begun = append(r.begun, r.name(e.Node)+" "+e.Part.String())
			r.open = append(r.open, e)
		case PartStopped:
			r.begun = append(r.begun, r.name(e.Node)+" stop")
		}
		r.apply(e)
	}
}

// endFirst ends the part that has run longest.
func (r *testRun) endFirst() {
	r.t.Helper()
	b := r.open[0]
	r.open = r.open[1:]
	r.apply(PartEnded{b.Node, b.Attempt, b.Part, r.code(b), ""})
}

func (r *testRun) code(b PartBegun) int {
	key := r.name(b.Node) + " " + b.Part.String()
	if code, ok := r.codes[fmt.Sprintf("%s %d", key, b.Attempt)]; ok {
		return code
	}
	if r.active[b.Node] && b.Part == JobPart { // it is removed
		return JobRemoved
	}
	return r.codes[key]
}

// finish runs the flow until it waits.
func (r *testRun) finish() {
	r.t.Helper()
	r.start()
	for len(r.open) > 0 {
		r.endFirst()
		r.start()
	}
}

func (r *testRun) expectBegun(want string) {
	r.t.Helper()
	if got := strings.Join(r.begun, ", "); got != want {
		r.t.Errorf("begun are %s\nwant      %s", got, want)
	}
	r.begun = nil
}

func (r *testRun) expectStates(want string) {
	r.t.Helper()
	var list []string
	for id, n := range r.definition.Graph.Nodes() {
		if n.Kind != graph.JoinNode {
			list = append(list, r.name(id)+" "+r.State(id).String())
		}
	}
	if got := strings.Join(list, ", "); got != want {
		r.t.Errorf("states are %s\nwant       %s", got, want)
	}
}

func (r *testRun) expectEnd(status FlowStatus, code int) {
	r.t.Helper()
	if s, c := r.Status(); r.Phase() != Ended || s != status || c != code {
		r.t.Errorf("the flow is %v with status %d and code %d, want %d and %d", r.Phase(), s, c, status, code)
	}
}

// TestNodeOutcomes checks the tables of DAGMan's manual: which parts of a node run, and
// what becomes of it.
func TestNodeOutcomes(t *testing.T) {
	const none = 99
	for _, test := range []struct {
		pre, job, post int
		always         bool
		skip           int
		want           string
	}{
		{none, 0, none, false, 0, "job: done"},
		{none, 3, none, false, 0, "job: failed"},
		{none, 0, 0, false, 0, "job post: done"},
		{none, 0, 4, false, 0, "job post: failed"},
		{none, 3, 0, false, 0, "job post: done"},
		{none, 3, 4, false, 0, "job post: failed"},
		{0, 0, none, false, 0, "pre job: done"},
		{0, 3, none, false, 0, "pre job: failed"},
		{0, 0, 0, false, 0, "pre job post: done"},
		{0, 0, 4, false, 0, "pre job post: failed"},
		{0, 3, 0, false, 0, "pre job post: done"},
		{0, 3, 4, false, 0, "pre job post: failed"},
		{2, 0, none, false, 0, "pre: failed"},
		{2, 0, 0, false, 0, "pre: failed"},
		{2, 0, none, true, 0, "pre: failed"},
		{2, 0, 0, true, 0, "pre post: done"},
		{2, 0, 4, true, 0, "pre post: failed"},
		{2, 0, none, false, 2, "pre: done"},
		{2, 0, 0, true, 2, "pre: done"},
		{5, 0, 0, false, 2, "pre: failed"},
	} {
		f := newTestFlow(t)
		id := f.jobs("n")[0]
		f.AlwaysRunPost = test.always
		f.rule(id, NodeRules{HasPre: test.pre != none, HasPost: test.post != none,
			PreSkip: ExitRule{test.skip, test.skip != 0}})
		r := f.begin(Limits{})
		r.codes = map[string]int{"n pre": test.pre, "n job": test.job, "n post": test.post}
		r.finish()
		got := strings.ReplaceAll(strings.Join(r.begun, " "), "n ", "") + ": " + r.State(id).String()
		if got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}

// TestPostSeesCodes checks what a POST script is given.
func TestPostSeesCodes(t *testing.T) {
	f := newTestFlow(t)
	id := f.jobs("n")[0]
	f.AlwaysRunPost = true
	f.rule(id, NodeRules{HasPre: true, HasPost: true})
	f.Graph.Node(id).Retry = 1
	r := f.begin(Limits{})
	r.codes = map[string]int{"n pre 0": 7, "n pre 1": 0, "n job": -9, "n post 0": 1}
	r.start()
	r.endFirst()
	if pre, job := r.Result(id); pre != 7 || job != PreFailed {
		t.Errorf("after the PRE script: %d, %d", pre, job)
	}
	r.start()
	r.endFirst()
	r.start()
	r.endFirst()
	r.start()
	r.endFirst()
	if pre, job := r.Result(id); pre != 0 || job != -9 {
		t.Errorf("after the job: %d, %d", pre, job)
	}
	r.finish()
	r.expectEnd(StatusOK, 0)
	if pre, job := r.Result(id); pre != 0 || job != 0 || len(r.results) != 0 {
		t.Errorf("%d, %d stay", pre, job)
	}
}

func TestRetry(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "b")
	f.Graph.AddArc(n[0], n[1], false)
	f.Graph.Node(n[0]).Retry = 2
	f.rule(n[0], NodeRules{HasPre: true, UnlessExit: ExitRule{9, true}})
	r := f.begin(Limits{})
	r.codes = map[string]int{"a job 0": 1, "a pre 1": 1}
	r.finish()
	r.expectBegun("a pre, a job, a pre, a pre, a job, b job")
	r.expectEnd(StatusOK, 0)
	r = f.begin(Limits{})
	r.codes = map[string]int{"a job 1": 9, "a job": 1}
	r.finish()
	r.expectBegun("a pre, a job, a pre, a job")
	r.expectStates("a failed, b futile")
	r.expectEnd(StatusNodeFailed, 1)
}

// TestWeakArcs runs a child over a weak arc after a failed parent. It does not run after
// one that was never executed.
func TestWeakArcs(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "weak", "strong", "below")
	f.Graph.AddArc(n[0], n[1], true)
	f.Graph.AddArc(n[0], n[2], false)
	f.Graph.AddArc(n[2], n[3], true)
	r := f.begin(Limits{})
	r.codes["a job"] = 1
	r.finish()
	r.expectStates("a failed, weak done, strong futile, below futile")
	if got := r.RescueNodes(); !slices.Equal(got, []graph.NodeID{n[1]}) {
		t.Errorf("a rescue file has %v", got)
	}
	r.codes["a job"] = 0
	r.begun = nil
	r.apply(FlowRetried{})
	r.finish()
	r.expectBegun("a job, strong job, below job")
	r.expectEnd(StatusOK, 0)
	if r.Number() != 2 {
		t.Errorf("it was begun %d times", r.Number())
	}
}

func TestAbort(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "b", "c", "d")
	f.Graph.AddArc(n[0], n[3], false)
	f.Graph.Node(n[0]).Retry = 5
	f.rule(n[0], NodeRules{AbortOn: ExitRule{3, true}, AbortReturn: ExitRule{7, true}})
	f.add("end", graph.FinalNode)
	r := f.begin(Limits{Jobs: 2})
	r.codes["a job"] = 3
	r.finish()
	r.expectBegun("a job, b job, b stop, end job")
	r.expectStates("a failed, b failed, c job-ready, d futile, end done")
	r.expectEnd(StatusAborted, 7)
	r.codes["a job"] = 0
	r.begun = nil
	r.apply(FlowRetried{})
	r.finish()
	r.expectEnd(StatusOK, 0)
	r.expectStates("a done, b done, c done, d done, end done")
}

// TestFinal checks that the FINAL node runs after all else and decides the outcome.
func TestFinal(t *testing.T) {
	for _, test := range []struct {
		job, final int
		status     FlowStatus
	}{{0, 0, StatusOK}, {1, 0, StatusOK}, {0, 1, StatusNodeFailed}, {1, 1, StatusNodeFailed}} {
		f := newTestFlow(t)
		f.jobs("a")
		f.rule(f.add("end", graph.FinalNode), NodeRules{HasPre: true, HasPost: true})
		r := f.begin(Limits{})
		r.codes = map[string]int{"a job": test.job, "end post": test.final}
		r.finish()
		r.expectBegun("a job, end pre, end job, end post")
		code := 0
		if test.status != StatusOK {
			code = 1
		}
		r.expectEnd(test.status, code)
	}
}

// TestRemove removes a flow. What runs is stopped, and then FINAL runs. If it ran
// already, it runs once more.
func TestRemove(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "b")
	f.Graph.AddArc(n[0], n[1], false)
	f.rule(n[0], NodeRules{HasPost: true})
	f.add("end", graph.FinalNode)
	f.add("helper", graph.ServiceNode)
	r := f.begin(Limits{})
	r.start()
	r.apply(FlowRemoved{})
	r.finish()
	r.expectBegun("helper job, a job, a stop, end job")
	r.expectStates("a failed, b waiting, end done, helper done")
	r.expectEnd(StatusRemoved, 1)
	r = f.begin(Limits{})
	r.start()
	for r.Phase() != Finishing { // FINAL is submitted after the service
		r.open = slices.DeleteFunc(r.open, func(b PartBegun) bool {
			if r.name(b.Node) == "helper" {
				return false
			}
			r.apply(PartEnded{b.Node, b.Attempt, b.Part, 0, ""})
			return true
		})
		r.start()
	}
	r.begun = nil
	r.apply(FlowRemoved{})
	r.start()
	r.expectBegun("end stop")
	r.open = slices.DeleteFunc(r.open, func(b PartBegun) bool { return r.name(b.Node) == "helper" })
	r.finish()
	r.expectBegun("end job, helper stop")
	r.apply(PartEnded{r.beside[1], 0, JobPart, JobRemoved, ""})
	r.expectEnd(StatusRemoved, 1)
}

// TestProvisioner checks that all wait for the PROVISIONER node, and that a flow without
// it is none.
func TestProvisioner(t *testing.T) {
	f := newTestFlow(t)
	f.jobs("a")
	p := f.add("room", graph.ProvisionerNode)
	r := f.begin(Limits{})
	r.start()
	r.expectBegun("room job")
	r.apply(ProvisionerReady{})
	r.start()
	r.expectBegun("a job")
	r.apply(PartEnded{0, 0, JobPart, 0, ""})
	r.start()
	r.expectBegun("room stop")
	r.apply(PartEnded{p, 0, JobPart, JobRemoved, ""})
	r.expectEnd(StatusOK, 0)
	r = f.begin(Limits{})
	r.finish()
	r.expectBegun("room job")
	r.expectStates("a job-ready, room done")
	r.expectEnd(StatusError, 1)
}

// TestLimits checks that no more parts run than the limits allow. POST scripts go on in a
// halted flow, and a category is not in the way of others.
func TestLimits(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "b", "c", "d", "e")
	f.Categories = append(f.Categories, 1)
	for _, id := range n[:3] {
		f.Graph.Node(id).Category = 1
	}
	f.Graph.Node(n[4]).Priority = 5
	f.rule(n[0], NodeRules{HasPost: true})
	r := f.begin(Limits{Jobs: 3})
	r.start()
	r.expectBegun("e job, a job, d job")
	r.apply(FlowHalted{true})
	r.apply(PartEnded{n[0], 0, JobPart, 0, ""})
	r.apply(PartEnded{n[3], 0, JobPart, 0, ""})
	r.start()
	r.expectBegun("a post")
	r.apply(FlowHalted{false})
	r.start()
	r.expectBegun("b job")
	r.apply(LimitsChanged{Limits{Categories: []int{-1, 2}}})
	r.start()
	r.expectBegun("c job")
	idle := newTestFlow(t)
	idle.jobs("x", "y", "z")
	idle.Tasks = func(graph.NodeID) int { return 10 }
	r = idle.begin(Limits{IdleTasks: 15})
	r.start()
	r.expectBegun("x job, y job")
	r.apply(TasksMoved{0, 2})
	r.start()
	r.expectBegun("z job")
}

// TestNoop checks that the job of a NOOP node is not run, and its scripts are.
func TestNoop(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "b")
	f.Graph.AddArc(n[0], n[1], false)
	f.Graph.Node(n[0]).Flags |= graph.NoopFlag
	f.Graph.Node(n[1]).Flags |= graph.NoopFlag
	f.rule(n[1], NodeRules{HasPre: true, HasPost: true})
	r := f.begin(Limits{Jobs: 1})
	r.finish()
	r.expectBegun("b pre, b post")
	r.expectEnd(StatusOK, 0)
}

// TestOldNews checks that events of an attempt that is over change nothing.
func TestOldNews(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a")
	f.Graph.Node(n[0]).Retry = 1
	r := f.begin(Limits{})
	r.start()
	r.apply(PartEnded{n[0], 0, JobPart, 1, ""})
	if r.apply(PartBegun{n[0], 0, JobPart, 0}); r.State(n[0]) != JobReady {
		t.Errorf("the begin of the attempt before makes it %v", r.State(n[0]))
	}
	r.start()
	for _, e := range []FlowEvent{PartEnded{n[0], 0, JobPart, 0, ""}, PartBegun{n[0], 0, JobPart, 0},
		PartBegun{n[0], 1, JobPart, 0}, PartEnded{n[0], 1, PostPart, 0, ""}, PartStopped{n[0]}, ProvisionerReady{},
		FlowRetried{}} {
		r.apply(e)
		if r.State(n[0]) != JobRuns || r.Attempt(n[0]) != 1 {
			t.Errorf("after %T %+v it is %v", e, e, r.State(n[0]))
		}
	}
}

// TestStopsAtFailure checks that a flow that stops at a failure begins no more nodes, and
// removes none. Begun again it goes on with what is not done.
func TestStopsAtFailure(t *testing.T) {
	f := newTestFlow(t)
	n := f.jobs("a", "b", "c", "d", "e")
	f.StopsAtFailure = true
	if err := f.Graph.Depend(n[:1], n[2:3], false, false); err != nil {
		t.Fatal(err)
	}
	r := f.begin(Limits{Jobs: 2})
	r.codes["a job"] = 2
	r.finish()
	r.expectBegun("a job, b job")
	r.expectStates("a failed, b done, c futile, d job-ready, e job-ready")
	r.expectEnd(StatusNodeFailed, 1)
	r.codes["a job"] = 0
	r.apply(FlowRetried{})
	r.finish()
	r.expectBegun("a job, d job, e job, c job")
	r.expectEnd(StatusOK, 0)
}
