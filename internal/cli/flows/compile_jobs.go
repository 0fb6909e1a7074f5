package flows

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/internal/submit/flowplan"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
)

// compileJobs reads what the nodes run, and puts it into the plan. It changes the nodes
// of the flow, which lead into the plan then.
func compileJobs(c *frame.Invocation, flow *dag.Flow, p *plan.Plan, opts submit.ParseOptions) error {
	for id, n := range flow.Graph.Nodes() {
		if n.Kind == graph.SubflowNode {
			return frame.WithHint(frame.KindErrorf(roost.Invalid, "node %s: the queue does not run SUBDAG EXTERNAL",
				flow.Graph.Name(id)), "write SPLICE in its place, or submit the other flow by itself")
		}
	}
	compiled, diags := flowplan.Compile(flow, flowplan.Options{Job: opts, Seed: uint64(opts.Now.UnixNano())})
	printDiagnostics(c, diags)
	if diags.HasErrors() {
		return frame.ExitError(errorKind(diags).ExitCode())
	}
	pins := jobs.NewPins()
	for i := range compiled.Templates[1:] {
		t := &compiled.Templates[i+1]
		if err := pins.Prepare(c, &t.Job); err != nil {
			return err
		}
		p.Templates = append(p.Templates, plan.JobTemplate{Ad: t.Job.Ad.String(), Count: t.Job.Count,
			Columns: t.Columns, NodeColumns: t.NodeColumns, Source: t.Source})
	}
	p.Values = compiled.Values
	for id, n := range flow.Graph.Nodes() {
		job := compiled.Nodes[id]
		n.Description, n.Vars = job.Template, job.Values
	}
	return nil
}
