package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue"
)

// parseFlow reads the plan of a job that is a flow; nil for one that is none.
func parseFlow(form []byte) (*queue.FlowSubmission, error) {
	if len(form) == 0 {
		return nil, nil
	}
	p, err := plan.Decode(form)
	if err != nil {
		return nil, err
	}
	f := &queue.FlowSubmission{Form: form, Plan: p, Ads: make([]*classad.Ad, len(p.Templates))}
	for i := range p.Templates[1:] {
		if f.Ads[i+1], err = classad.Parse(p.Templates[i+1].Ad); err != nil {
			return nil, fmt.Errorf("plan of a flow: the jobs of %s: %w: %w", p.Templates[i+1].Source, roost.Invalid,
				err)
		}
	}
	return f, nil
}

// withFlowJobs returns the jobs of a submission, and behind them what the nodes of its
// flows run. Whatever is asked about jobs is asked about those, too.
func withFlowJobs(specs []queue.SubmitSpec) []queue.SubmitSpec {
	all := slices.Clone(specs)
	for _, spec := range specs {
		f := spec.Flow
		if f == nil {
			continue
		}
		first := make([]graph.NodeID, len(f.Ads))
		for id, n := range f.Plan.Graph.Nodes() {
			if n.Description != 0 && first[n.Description] == 0 {
				first[n.Description] = id + 1
			}
		}
		for i, ad := range f.Ads {
			if i == 0 {
				continue
			}
			one := queue.SubmitSpec{Ad: ad, Count: max(f.Plan.Templates[i].Count, 1)}
			if id := first[i]; id > 0 {
				for _, c := range f.Plan.ColumnsOf(id - 1) {
					one.Columns = append(one.Columns, queue.TaskColumn(c))
				}
			}
			all = append(all, one)
		}
	}
	return all
}

// takeFlowJobs puts what became of the jobs of withFlowJobs back into the submission.
func takeFlowJobs(specs, all []queue.SubmitSpec) {
	more := all[len(specs):]
	copy(specs, all)
	for i := range specs {
		f := specs[i].Flow
		if f == nil {
			continue
		}
		for k := range f.Ads {
			if k > 0 {
				f.Ads[k], more = more[0].Ad, more[1:]
			}
		}
	}
}

// checkStoredFlows refuses flows of whose jobs files were stored. Each node would need
// files of its own.
func checkStoredFlows(specs, all []queue.SubmitSpec) error {
	for _, spec := range all[len(specs):] {
		if _, stored := spec.Ad.Lookup(roost.AttrStoredInput); stored {
			return fmt.Errorf("%w: the jobs of a flow in the queue of the cell cannot have their files stored: put "+
				"the files on a file system that the machines have, or submit the flow to the queue of this host",
				roost.Invalid)
		}
	}
	return nil
}

// flowForm returns the plan of a flow with the ads of its jobs as they are now.
func flowForm(f *queue.FlowSubmission) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	for i, ad := range f.Ads {
		if i > 0 {
			f.Plan.Templates[i].Ad = ad.String()
		}
	}
	return plan.Encode(f.Plan)
}

// checkFlowScripts refuses flows with scripts at a submit node that cannot run them.
func checkFlowScripts(node *config.Node, specs []queue.SubmitSpec) error {
	for _, spec := range specs {
		if spec.Flow == nil || len(node.Startds) > 0 {
			continue
		}
		for id, n := range spec.Flow.Plan.Graph.Nodes() {
			if s := spec.Flow.Plan.SettingsOf(id); s.Pre != 0 || s.Post != 0 || n.Kind == graph.SubflowNode {
				return fmt.Errorf("node %s of the flow: %w: it runs something at the submit node, and %s "+
					"has no startd: an administrator adds a startd block to its node file, or the flow is "+
					"submitted at a machine that has one", spec.Flow.Plan.Graph.Name(id), roost.Invalid, node.Name)
			}
		}
	}
	return nil
}

// decideFlow decides on a command to a flow.
func (act *jobActions) decideFlow(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	order *wire.FlowOrder) ([]queue.JobEvent, error) {
	var step flow.FlowEvent
	switch word := order.GetCommand(); word {
	case "halt", "resume":
		step = flow.FlowHalted{On: word == "halt"}
	case "ready":
		step = flow.ProvisionerReady{}
	case "throttle":
		limits, err := act.changedLimits(t, order.GetLimits())
		if err != nil {
			return nil, err
		}
		step = flow.LimitsChanged{Limits: limits}
	default:
		return nil, fmt.Errorf("command %q to a flow: %w: it is none of halt, resume, throttle, ready", word,
			roost.Invalid)
	}
	return act.queue.OrderFlow(now, who, t, step)
}

// changedLimits returns the limits of a flow with changes.
func (act *jobActions) changedLimits(t queue.TaskSelector, change *wire.FlowLimits) (flow.Limits, error) {
	limits, categories, ok := act.queue.FlowLimits(t.Job.Seq)
	if !ok {
		return limits, nil // that is said by who decides
	}
	for _, l := range []struct {
		to   *int
		from *uint32
	}{{&limits.Jobs, change.Jobs}, {&limits.IdleTasks, change.Idle}, {&limits.Pre, change.Pre},
		{&limits.Post, change.Post}} {
		if l.from != nil {
			*l.to = int(min(*l.from, roost.MaxTasks))
		}
	}
	for name, n := range change.GetCategories() {
		i, ok := categories[name]
		if !ok {
			return limits, fmt.Errorf("%v: %w: it has no category %q", t, roost.NotFound, name)
		}
		limits.Categories[i] = int(max(n, -1))
	}
	return limits, nil
}

// addFlowRow adds to a row how a flow goes.
func addFlowRow(m *wire.JobStatus, st *queue.JobStatus) {
	f := st.Flow
	if f == nil {
		return
	}
	row := &wire.FlowProgress{Phase: f.Phase.String(), Halted: f.Halted, Status: uint32(f.Status),
		Nodes: uint32(f.Nodes), States: map[string]uint32{}, Number: uint32(f.Number), Limits: flowLimits(f)}
	for name, n := range f.States {
		row.States[name] = uint32(n)
	}
	for _, x := range f.Failures {
		one := &wire.FlowFailure{Node: validUTF8(x.Node), Reason: validUTF8(x.Reason)}
		if !x.Job.IsZero() {
			one.Job = x.Job.String()
		}
		row.Failures = append(row.Failures, one)
	}
	m.Flow = row
}

// flowLimits tells the limits of a flow.
func flowLimits(f *queue.FlowStatus) *wire.FlowLimits {
	of := func(n int) *uint32 { u := uint32(n); return &u }
	l := &wire.FlowLimits{Jobs: of(f.Limits.Jobs), Idle: of(f.Limits.IdleTasks), Pre: of(f.Limits.Pre),
		Post: of(f.Limits.Post)}
	for i, name := range f.Categories {
		if i > 0 && i < len(f.Limits.Categories) {
			if l.Categories == nil {
				l.Categories = map[string]int32{}
			}
			l.Categories[validUTF8(name)] = int32(f.Limits.Categories[i])
		}
	}
	return l
}

// flowCalls lists the nodes of flows. Its method is that of wire.ScheddServer.
type flowCalls struct {
	view        *jobView
	checkCaller func(context.Context) (queue.CallerIdentity, error) // whom the schedd serves
}

// flowNodesOfMessage is how many nodes the loop lists at once.
const flowNodesOfMessage = 2048

// ListFlowNodes lists the nodes of a flow, in their order there. The flow is in the queue
// or in the history.
func (f *flowCalls) ListFlowNodes(req *wire.FlowNodesRequest, stream grpc.ServerStreamingServer[wire.FlowNodes]) error {
	ctx := stream.Context()
	if _, err := f.checkCaller(ctx); err != nil {
		return err
	}
	id, err := roost.ParseJobID(req.GetId(), f.view.node.Name)
	if err != nil {
		return fmt.Errorf("flow %q: %w: %w", req.GetId(), roost.Invalid, err)
	}
	var past *queue.Queue // of a flow in the history: itself alone
	for first, more := graph.NodeID(0), true; more; {
		m := &wire.FlowNodes{}
		seen, from := 0, first
		list := func(of *queue.Queue) {
			first, more, err = of.FlowNodes(id.Seq, from, func(n queue.FlowNode) bool {
				if wantsNode(req, &n) {
					m.Nodes = append(m.Nodes, flowNode(&n))
				}
				seen++
				return seen < flowNodesOfMessage
			})
		}
		if past == nil {
			if lerr := f.view.loop.CallLoop(ctx, func(time.Time) { list(f.view.queue) }); lerr != nil {
				return lerr
			}
		}
		if past == nil && errors.Is(err, roost.NotFound) {
			var herr error
			if past, _, herr = f.view.history.Job(id.Seq); herr != nil {
				return err
			}
		}
		if past != nil {
			list(past)
		}
		if err != nil {
			return err
		}
		if len(m.Nodes) > 0 {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func wantsNode(req *wire.FlowNodesRequest, n *queue.FlowNode) bool {
	return (len(req.GetStates()) == 0 || slices.Contains(req.GetStates(), n.State.String())) &&
		(len(req.GetNames()) == 0 || slices.Contains(req.GetNames(), n.Name))
}

func flowNode(n *queue.FlowNode) *wire.FlowNode {
	m := &wire.FlowNode{Name: validUTF8(n.Name), Kind: n.Kind, State: n.State.String(), Attempt: uint32(n.Attempt),
		Retries: uint32(n.Retries), Reason: validUTF8(n.Reason)}
	for _, name := range n.Children {
		m.Children = append(m.Children, validUTF8(name))
	}
	if !n.Job.IsZero() {
		m.Job = n.Job.String()
	}
	return m
}
