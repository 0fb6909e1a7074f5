package pool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// flowSpec returns the submission of a flow whose nodes run the job of a spec. Each job
// gets the name of its node and its attempt as arguments.
func flowSpec(terms *audit.FlowTerms, spec queue.SubmitSpec) queue.SubmitSpec {
	p := &plan.Plan{Graph: graph.New(), Texts: graph.NewTextTable(), Templates: make([]plan.JobTemplate, 2),
		Settings: make([]plan.NodeSettings, 1), Scripts: make([]plan.NodeScript, 1),
		Categories: make([]plan.Category, 1), Directory: "/", Files: []string{"/flow.dag"},
		Limits: flow.Limits{Jobs: terms.MaxJobs}}
	spec.Ad.SetStrings(roost.AttrArguments, []string{"$(JOB)", "$(RETRY)"})
	p.Templates[1] = plan.JobTemplate{Ad: spec.Ad.String(), Count: 1, Source: "flow",
		NodeColumns: []string{plan.ColumnNode, plan.ColumnRetry}}
	for i := range terms.Nodes {
		n := &terms.Nodes[i]
		kind := graph.JobNode
		if n.IsFinal {
			kind = graph.FinalNode
		}
		id, _, err := p.Graph.AddNode([]byte(nodeName(i)), kind)
		if err != nil {
			panic(err) // the names are different
		}
		node := p.Graph.Node(id)
		node.Description, node.Retry = 1, uint16(n.Retries)
		if n.IsNoop {
			node.Flags |= graph.NoopFlag
		}
		if n.IsFinal {
			p.Final, p.HasFinal = id, true
		}
		for _, parent := range n.Parents {
			p.Graph.AddArc(graph.NodeID(parent), id, n.IsWeak)
		}
	}
	p.Graph.Finish()
	form, err := plan.Encode(p)
	if err == nil {
		p, err = plan.Decode(form) // as it comes over the wire
	}
	if err != nil {
		panic(fmt.Sprintf("pool: a flow that cannot be submitted: %v", err))
	}
	ad := classad.New()
	ad.SetBool(roost.AttrIsFlow, true)
	return queue.SubmitSpec{Ad: ad, Count: 1, Flow: &jobad.FlowSubmission{Form: form, Plan: p,
		Ads: []*classad.Ad{nil, spec.Ad}}}
}

func nodeName(i int) string { return "n" + strconv.Itoa(i) }

// flowCode returns the exit code of the job of a node by its arguments.
func flowCode(terms *audit.FlowTerms, arguments [][]byte) int32 {
	if len(arguments) != 2 {
		panic(fmt.Sprintf("pool: a node of a flow runs with the arguments %q", arguments))
	}
	node, err := strconv.Atoi(strings.TrimPrefix(string(arguments[0]), "n"))
	attempt, aerr := strconv.Atoi(string(arguments[1]))
	if err != nil || aerr != nil || node >= len(terms.Nodes) {
		panic(fmt.Sprintf("pool: a node of a flow runs with the arguments %q", arguments))
	}
	if attempt < terms.Nodes[node].Failures {
		return 1
	}
	return 0
}

// partStored handles the job of a part of a flow that is on disk. Its task counts as one
// of the job that the flow is.
func (s *jobReporter) partStored(id roost.JobID, sub *queue.SubmittedJob, p queue.FlowPart) {
	i := s.flows[p.Flow]
	s.jobs[id.Seq] = i
	u := &s.sim.users[i]
	if u.unfinished += sub.Count; u.unfinished == sub.Count {
		s.sim.unfinished++
	}
	s.sim.tasks += sub.Count
	s.parts[id.Seq] = true
	st, _ := s.state().Status(id.Seq)
	s.sim.observe(audit.Event{Type: audit.FlowPartStored, Node: s.queueName, Key: sub.Key, Job: id, Tasks: sub.Count,
		Resources: st.Resources, Of: roost.JobID{Seq: p.Flow, Host: s.queueName}, Index: int(p.Node),
		Attempt: roost.AttemptNumber(p.Attempt)})
}

// reportFlow reports the durable steps of a flow, and its end.
func (s *jobReporter) reportFlow(id roost.JobID, e *queue.JobEvent) {
	for _, step := range e.FlowEvents {
		switch step := step.(type) {
		case flow.PartBegun:
			s.sim.observe(audit.Event{Type: audit.FlowPartBegun, Job: id, Index: int(step.Node),
				Attempt: roost.AttemptNumber(step.Attempt), Of: roost.JobID{Seq: step.Job, Host: s.queueName}})
		case flow.PartEnded:
			s.sim.observe(audit.Event{Type: audit.FlowPartEnded, Job: id, Index: int(step.Node),
				Attempt: roost.AttemptNumber(step.Attempt), Code: int32(step.Code)})
		}
	}
	s.taskEnded(id, 0, 0)
}

// reportFlowEnded reports that a flow has ended by itself.
func (s *jobReporter) reportFlowEnded(id roost.JobID, st queue.JobStatus) {
	var code int32
	if st.Failed > 0 {
		code = 1
	}
	s.sim.observe(audit.Event{Type: audit.FlowEnded, Job: id, Code: code})
}

// isFlow reports whether a job on disk is a flow.
func (s *jobReporter) isFlow(id roost.JobID) bool {
	_, ok := s.flows[id.Seq]
	return ok
}
