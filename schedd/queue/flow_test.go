package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// flowPlan is a plan that a test builds.
type flowPlan struct {
	testing.TB
	*plan.Plan
}

// newFlowPlan returns a plan of nodes that run the program of a template. Their job has
// the value of a column, the name of the node.
func newFlowPlan(t testing.TB) *flowPlan {
	p := &plan.Plan{Graph: graph.New(), Texts: graph.NewTextTable(), Templates: make([]plan.JobTemplate, 2),
		Settings: make([]plan.NodeSettings, 1), Scripts: make([]plan.NodeScript, 1),
		Categories: make([]plan.Category, 1), Directory: "/home/alice", Files: []string{"/home/alice/a.dag"},
		RescueBase: "/home/alice/a.dag"}
	p.Templates[1] = plan.JobTemplate{Ad: `[Cmd = "/bin/node"; Arguments = {"$(name)", "$(RETRY)"}; JobName = "node"]`,
		Count: 1, Columns: []string{"name"}, NodeColumns: []string{plan.ColumnRetry}, Source: "node.sub"}
	return &flowPlan{t, p}
}

func (p *flowPlan) node(name string, parents ...string) *graph.Node {
	p.Helper()
	id, isNew, err := p.Graph.AddNode([]byte(name), graph.JobNode)
	if err != nil || !isNew {
		p.Fatalf("node %s: %v", name, err)
	}
	value, _ := p.Texts.Add([]byte(name))
	n := p.Graph.Node(id)
	n.Description, n.Vars = 1, uint32(len(p.Values))
	p.Values = append(p.Values, value)
	for _, parent := range parents {
		of, ok := p.Graph.Find([]byte(parent))
		if !ok {
			p.Fatalf("there is no node %s", parent)
		}
		p.Graph.AddArc(of, id, false)
	}
	return n
}

// scripts gives a node scripts.
func (p *flowPlan) scripts(n *graph.Node, pre, post string) {
	var s plan.NodeSettings
	add := func(command string) uint32 {
		if command == "" {
			return 0
		}
		id, _ := p.Texts.Add([]byte(command))
		p.Scripts = append(p.Scripts, plan.NodeScript{Command: id})
		return uint32(len(p.Scripts) - 1)
	}
	s.Pre, s.Post = add(pre), add(post)
	s.Rules.HasPre, s.Rules.HasPost = s.Pre != 0, s.Post != 0
	p.Settings = append(p.Settings, s)
	n.Settings = uint32(len(p.Settings) - 1)
}

// submitFlow submits a flow, as it comes over the wire.
func (d *testQueue) submitFlow(p *flowPlan) roost.JobID {
	d.Helper()
	p.Graph.Finish()
	form, err := plan.Encode(p.Plan)
	if err != nil {
		d.Fatal(err)
	}
	d.keys++
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k"+strconv.Itoa(d.keys), []jobad.SubmitSpec{
		flowSpec(d, form)}, SubmitLimits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
	return ids[0]
}

func flowSpec(t testing.TB, form []byte) jobad.SubmitSpec {
	t.Helper()
	p, err := plan.Decode(form)
	if err != nil {
		t.Fatal(err)
	}
	f := &jobad.FlowSubmission{Form: form, Plan: p, Ads: make([]*classad.Ad, len(p.Templates))}
	for i := range f.Ads {
		if i > 0 {
			if f.Ads[i], err = classad.Parse(p.Templates[i].Ad); err != nil {
				t.Fatal(err)
			}
		}
	}
	ad, err := classad.Parse(`[JobName = "flow"; IsFlow = true]`)
	if err != nil {
		t.Fatal(err)
	}
	return jobad.SubmitSpec{Ad: ad, Count: 1, Flow: f}
}

// advance takes all steps of flows, and returns which parts have begun.
func (d *testQueue) advance() string {
	d.Helper()
	var begun []string
	for events := d.queue.AdvanceFlows(d.now, SubmitLimits{}, true); len(events) > 0; events = d.queue.AdvanceFlows(
		d.now, SubmitLimits{}, true) {
		d.apply(events...)
		for _, e := range events {
			for _, step := range e.FlowEvents {
				if s, ok := step.(flow.PartBegun); ok {
					name := d.queue.jobs[e.Job].flow.plan.Graph.Name(s.Node)
					begun = append(begun, fmt.Sprintf("%s.%v.%d", name, s.Part, s.Attempt))
				}
			}
		}
	}
	return strings.Join(begun, " ")
}

// partJob is the job of the part of a node that runs.
func (d *testQueue) partJob(id roost.JobID, name string) roost.JobID {
	d.Helper()
	f := d.queue.jobs[id.Seq].flow
	node, ok := f.plan.Graph.Find([]byte(name))
	if !ok || f.jobs[node] == 0 {
		d.Fatalf("node %s has no job", name)
	}
	return roost.JobID{Seq: f.jobs[node], Host: "h"}
}

// finish runs the only task of the job of a node to its end.
func (d *testQueue) finish(id roost.JobID, name string, code int32) {
	d.Helper()
	job := d.partJob(id, name)
	d.runTask(job, eventlog.AttemptExit{Code: code})
}

func (d *testQueue) runTask(job roost.JobID, x eventlog.AttemptExit) {
	d.Helper()
	e, a, err := d.queue.AssignNext(d.now, job.Task(0), "n", "unix:/n", 1)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(e)
	d.end(a, x)
}

func (d *testQueue) expectAdvance(want string) {
	d.Helper()
	if got := d.advance(); got != want {
		d.Fatalf("began %q, want %q", got, want)
	}
}

// TestFlow checks a diamond: each node runs when its parents are done, and once.
func TestFlow(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	p.node("a")
	p.node("b", "a")
	p.node("c", "a")
	p.node("d", "b", "c")
	id := d.submitFlow(p)
	d.checkState(id, "blocked 1")
	d.expectAdvance("a.job.0")
	d.checkState(id, "running 1")
	if s, _ := d.queue.Status(id.Seq); s.Reason != "0 of 4 nodes done, 1 run" || s.Flow.States["job"] != 1 {
		t.Errorf("it shows %q, %+v", s.Reason, s.Flow)
	}
	job := d.partJob(id, "a")
	program, err := d.queue.Program(roost.AttemptID{Task: job.Task(0), Attempt: 1})
	if err != nil || fmt.Sprint(program.Arguments) != "[a 0]" {
		t.Errorf("it runs %q, %v", program.Arguments, err)
	}
	ad := parsedAd(d.queue.jobs[job.Seq])
	if by, _ := ad.Str(roost.AttrFlowID); by != id.String() {
		t.Errorf("it is of flow %q", by)
	}
	names := d.queue.TaskNames(id.Seq)
	if got := names.FlowEvents(&d.log[len(d.log)-1]); got != "node a: job is job 2" {
		t.Errorf("the event is told as %q", got)
	}
	d.finish(id, "a", 0)
	d.expectAdvance("b.job.0 c.job.0")
	d.finish(id, "c", 0)
	d.expectAdvance("")
	d.finish(id, "b", 0)
	d.expectAdvance("d.job.0")
	d.finish(id, "d", 0)
	d.expectAdvance("")
	d.checkState(id, "completed 1")
}

// TestFlowFails checks that a flow goes on as far as it can and fails with the reason. It
// begins again with the nodes that are not done.
func TestFlowFails(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	p.node("a").Retry = 1
	p.node("b", "a")
	p.node("c")
	id := d.submitFlow(p)
	d.expectAdvance("a.job.0 c.job.0")
	d.finish(id, "a", 3)
	d.expectAdvance("a.job.1")
	d.finish(id, "a", 4)
	d.expectAdvance("")
	d.finish(id, "c", 0)
	d.expectAdvance("")
	d.checkState(id, "completed 1 failed 1")
	if r, ok := FlowRescueOf(d.queue, &d.log[len(d.log)-1]); !ok || r.Base != "/home/alice/a.dag" ||
		!strings.HasSuffix(r.Text, "\n\nDONE c\n") {
		t.Errorf("its rescue file is %+v", r)
	}
	s, _ := d.queue.Status(id.Seq)
	if got, want := s.Task.Exit.Reason, "1 of its nodes failed and 1 could not run, the first one: node a: exit "+
		"code 3"; got != want {
		t.Errorf("it failed with %q, want %q", got, want)
	}
	events, err := d.queue.RetryTasks(d.now, alice, TaskSelector{Job: id})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectAdvance("a.job.0")
	d.finish(id, "a", 0)
	d.expectAdvance("b.job.0")
	d.finish(id, "b", 0)
	d.expectAdvance("")
	d.checkState(id, "completed 1")
}

// TestFlowScripts checks that scripts are tasks of the submit node, and their arguments.
// POST decides.
func TestFlowScripts(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	p.scripts(p.node("a"), "pre.sh $NODE $RETRY", "/bin/post $RETURN $PRE_SCRIPT_RETURN $SUCCESS $JOBID costs$5")
	id := d.submitFlow(p)
	d.expectAdvance("a.pre.0")
	pre := d.partJob(id, "a")
	program, err := d.queue.Program(roost.AttemptID{Task: pre.Task(0), Attempt: 1})
	if err != nil || program.Executable != "pre.sh" || fmt.Sprint(program.Arguments) != "[a 0]" ||
		program.Iwd != "/home/alice" || !d.queue.jobs[pre.Seq].spec.SubmitNodeTask {
		t.Errorf("it runs %+v, %v", program, err)
	}
	d.finish(id, "a", 0)
	d.expectAdvance("a.job.0")
	job := d.partJob(id, "a")
	d.runTask(job, eventlog.AttemptExit{Signal: 9})
	d.expectAdvance("a.post.0")
	program, err = d.queue.Program(roost.AttemptID{Task: d.partJob(id, "a").Task(0), Attempt: 1})
	if err != nil || fmt.Sprint(program.Arguments) != "[-9 0 False 3.0 costs$5]" {
		t.Errorf("it runs %q, %v", program.Arguments, err)
	}
	d.finish(id, "a", 0)
	d.expectAdvance("")
	d.checkState(id, "completed 1")
}

// TestFlowRemoved checks that a removal takes what runs with it, and runs the FINAL node.
func TestFlowRemoved(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	p.node("a")
	p.node("b", "a")
	n := p.node("z")
	n.Kind = graph.FinalNode
	p.Final, _ = p.Graph.Find([]byte("z"))
	p.HasFinal = true
	id := d.submitFlow(p)
	d.expectAdvance("a.job.0")
	job := d.partJob(id, "a")
	events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectAdvance("z.job.0")
	d.checkState(job, "removed 1")
	d.checkState(id, "running 1")
	d.finish(id, "z", 0)
	d.expectAdvance("")
	if s, _ := d.queue.Status(id.Seq); s.Counts[roost.Completed]+s.Counts[roost.Removed] != 1 {
		t.Errorf("it is %v", s.Counts)
	}
}

// TestFlowOrders checks that a halted flow begins nothing, and a held one neither. Limits
// change at once, and only the owner gives orders.
func TestFlowOrders(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	for i := range 6 {
		p.node(fmt.Sprint("n", i))
	}
	p.Limits.Jobs = 1
	id := d.submitFlow(p)
	target := TaskSelector{Job: id}
	d.expectAdvance("n0.job.0")
	order := func(step flow.FlowEvent) {
		t.Helper()
		events, err := d.queue.OrderFlow(d.now, alice, target, step)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	if _, err := d.queue.OrderFlow(d.now, bob, target, flow.FlowHalted{On: true}); !errors.Is(err,
		roost.PermissionDenied) {
		t.Errorf("somebody else halts it: %v", err)
	}
	order(flow.FlowHalted{On: true})
	d.finish(id, "n0", 0)
	d.expectAdvance("")
	if _, err := d.queue.OrderFlow(d.now, alice, target, flow.FlowHalted{On: true}); !errors.Is(err, roost.Conflict) {
		t.Errorf("it is halted twice: %v", err)
	}
	order(flow.FlowHalted{On: false})
	d.expectAdvance("n1.job.0")
	limits, _, _ := d.queue.FlowLimits(id.Seq)
	limits.Jobs = 3
	order(flow.LimitsChanged{Limits: limits})
	d.expectAdvance("n2.job.0 n3.job.0")
	events, err := d.queue.HoldTasks(d.now, alice, target, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.finish(id, "n1", 0)
	d.expectAdvance("")
	d.checkState(id, "held 1")
	if events, err = d.queue.ReleaseTasks(d.now, alice, target); err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.expectAdvance("n4.job.0")
	if _, err := d.queue.OrderFlow(d.now, alice, TaskSelector{Job: d.partJob(id, "n4")},
		flow.FlowHalted{On: true}); !errors.Is(err, roost.Invalid) {
		t.Errorf("a node's job is halted: %v", err)
	}
}

// TestFlowRefused checks that a flow is refused as a whole if a job of it could not be
// submitted. Nobody can have the key of a part.
func TestFlowRefused(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	p.node("a")
	p.Templates[1].Ad = `[Cmd = "/bin/node"; RequestCpus = -3]`
	p.Graph.Finish()
	form, err := plan.Encode(p.Plan)
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{flowSpec(t, form)}, SubmitLimits{})
	if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), "node a, the jobs of node.sub: ") {
		t.Errorf("got %v", err)
	}
	for _, src := range []string{`[IsFlow = true]`, `[IsFlow = true; Cmd = "/bin/true"]`} {
		ad, err := classad.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{{Ad: ad, Count: 1}},
			SubmitLimits{}); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: got %v", src, err)
		}
	}
	if _, ok := FlowPartOfKey(submissionKey(alice, "flow:1:1:0:0:1:0")); ok {
		t.Error("a user's key is that of a part")
	}
	if p, ok := FlowPartOfKey("flow:7:2:12:1:2:0"); !ok || p != (FlowPart{Flow: 7, Run: 2, Node: 12, Attempt: 1,
		Part: flow.PostPart}) || p.key() != "flow:7:2:12:1:2:0" {
		t.Errorf("the part is %+v", p)
	}
}

// BenchmarkFlowNoop measures the steps of nodes that run nothing.
func BenchmarkFlowNoop(b *testing.B) {
	const nodes = 20_000
	for b.Loop() {
		p := newFlowPlan(b)
		for i := range nodes {
			p.node(fmt.Sprint("n", i)).Flags = graph.NoopFlag
		}
		d := newTestQueue(b)
		id := d.submitFlow(p)
		d.advance()
		if !d.queue.jobs[id.Seq].isFinal() {
			b.Fatal("it has not ended")
		}
	}
	b.ReportMetric(nodes*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}

// TestFlowWaits checks that a flow waits for room in the queue and says so.
func TestFlowWaits(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	p.node("a")
	id := d.submitFlow(p)
	limits := SubmitLimits{MaxPerUser: 1}
	if events := d.queue.AdvanceFlows(d.now, limits, true); len(events) > 0 {
		t.Fatalf("it began: %v", events)
	}
	if s, _ := d.queue.Status(id.Seq); !strings.HasPrefix(s.Reason, "its next node waits: ") {
		t.Errorf("it shows %q", s.Reason)
	}
	if events := d.queue.AdvanceFlows(d.now, SubmitLimits{}, true); len(events) > 0 {
		t.Fatalf("it tries again at once: %v", events)
	}
	d.now = d.now.Add(2 * time.Second)
	d.expectAdvance("a.job.0")
}

// TestHoldScript checks that a HOLD script runs once for each hold, also over restarts.
// Nothing waits for it.
func TestHoldScript(t *testing.T) {
	d := newTestQueue(t)
	p := newFlowPlan(t)
	n := p.node("a")
	p.scripts(n, "", "")
	command, _ := p.Texts.Add([]byte("/bin/held $NODE $JOBID $EXIT_CODES"))
	p.Scripts = append(p.Scripts, plan.NodeScript{Command: command})
	p.Settings[n.Settings].Hold = uint32(len(p.Scripts) - 1)
	id := d.submitFlow(p)
	d.expectAdvance("a.job.0")
	job := d.partJob(id, "a")
	scripts := func() (list []string) {
		for _, seq := range slices.Sorted(maps.Keys(d.queue.jobs)) {
			if j := d.queue.jobs[seq]; strings.HasPrefix(j.texts.key(), holdKeyPrefix) {
				m, err := d.queue.newSubstituter(j, roost.AttemptID{Task: j.id("h").Task(0)})
				if err != nil {
					t.Fatal(err)
				}
				arguments, _ := m.Ad.Strings(roost.AttrArguments)
				part, _ := m.Ad.Str(roost.AttrFlowPart)
				list = append(list, part+" "+strings.Join(arguments, " "))
			}
		}
		return list
	}
	for hold := range 2 {
		events, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: job}, "")
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
		d.expectAdvance("")
		if got := scripts(); len(got) != hold+1 || got[hold] != "hold a "+fmt.Sprint(job.Seq)+".0 " {
			t.Fatalf("after %d holds the scripts are %q", hold+1, got)
		}
		again := New("h")
		for _, e := range d.log {
			again.Apply(e)
		}
		d.queue = again
		d.expectAdvance("")
		if got := scripts(); len(got) != hold+1 {
			t.Errorf("after a restart the scripts are %q", got)
		}
		d.now = d.now.Add(time.Second)
		if events, err = d.queue.ReleaseTasks(d.now, alice, TaskSelector{Job: job}); err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	d.finish(id, "a", 0)
	d.expectAdvance("")
	d.checkState(id, "completed 1")
}

// TestDescribeCodes checks the macros with the exit codes of tasks.
func TestDescribeCodes(t *testing.T) {
	for macro, want := range map[string]string{"EXIT_CODES": "-9,0,3", "EXIT_CODE_COUNTS": "-9:1,0:2,3:1",
		"EXIT_CODE_LIST": "0,3,-9,0"} {
		if got := describeCodes([]int{0, 3, -9, 0}, macro); got != want {
			t.Errorf("%s is %q, want %q", macro, got, want)
		}
		if got := describeCodes(nil, macro); got != "" {
			t.Errorf("%s of nothing is %q", macro, got)
		}
	}
}
