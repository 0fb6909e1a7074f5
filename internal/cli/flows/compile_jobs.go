package flows

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/internal/submit/flowplan"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
)

// compileJobs reads what the nodes run, and puts it into the plan. It changes the nodes
// of the flow, which lead into the plan then.
func compileJobs(c *frame.Invocation, flow *dag.Flow, p *plan.Plan, opts submit.ParseOptions,
	o *flowOptions) error {
	compiled, diags := flowplan.Compile(flow, flowplan.Options{Job: opts, Seed: uint64(opts.Now.UnixNano()),
		AppendVariables: o.appendVariables})
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
	subs := subflowNodes{plan: p, templates: map[string]uint32{}, useDAGDir: o.useDirectory}
	for id, n := range flow.Graph.Nodes() {
		job := compiled.Nodes[id]
		if n.Kind == graph.SubflowNode && n.Flags&graph.NoopFlag == 0 {
			file, _ := flow.Description(n)
			if err := subs.add(id, n, file); err != nil {
				return err
			}
			continue
		}
		n.Description, n.Vars = job.Template, job.Values
	}
	return nil
}

// subflowNodes compiles the nodes that run other flows. Each runs a command that submits
// the other flow when the node begins, so its files are read only then.
type subflowNodes struct {
	plan      *plan.Plan
	templates map[string]uint32 // by directory
	useDAGDir bool
}

// add compiles a node. The number of its flow and its name give the other flow its submit
// key, so a node that is tried again goes on with the flow that failed.
func (s *subflowNodes) add(id graph.NodeID, n *graph.Node, file string) error {
	directory := s.plan.ScriptDirectory(id)
	number, ok := s.templates[directory]
	if !ok {
		self, err := os.Executable()
		if err != nil {
			return frame.KindErrorf(roost.NoInput, "own program: %v", err)
		}
		arguments := []string{"flow", "submit", "--sub-flow", "--key", "subdag:$(DAGManJobId):$(key)"}
		if s.useDAGDir {
			arguments = append(arguments, "--use-dag-dir")
		}
		ad := classad.New()
		ad.SetString(roost.AttrJobName, "subdag")
		ad.SetString(roost.AttrCmd, jobspec.EscapeLiteral(filepath.Join(filepath.Dir(self), frame.MainProgram)))
		ad.SetStrings(roost.AttrArguments, append(arguments, "$(file)"))
		environment := make([]string, len(s.plan.Environment))
		for i, v := range s.plan.Environment {
			environment[i] = jobspec.EscapeLiteral(v)
		}
		ad.SetStrings(roost.AttrEnvironment, environment)
		ad.SetString(roost.AttrIwd, jobspec.EscapeLiteral(directory))
		ad.SetString(roost.AttrTransfer, "never")
		ad.SetString(roost.AttrOut, "$(file).flow.out")
		ad.SetString(roost.AttrErr, "$(file).flow.out")
		ad.SetBool(roost.AttrJoinOutput, true)
		ad.SetBool(roost.AttrSubmitNodeTask, true)
		ad.SetReal(roost.AttrRequestCpus, 0.01)
		ad.SetInt(roost.AttrRequestMemory, 64)
		s.plan.Templates = append(s.plan.Templates, plan.JobTemplate{Ad: ad.String(), Count: 1,
			Columns: []string{"file", "key"}, NodeColumns: []string{plan.ColumnFlow}, Source: "SUBDAG EXTERNAL"})
		number = uint32(len(s.plan.Templates) - 1)
		s.templates[directory] = number
	}
	n.Description, n.Vars = number, uint32(len(s.plan.Values))
	sum := sha256.Sum256(s.plan.Graph.NameBytes(id))
	for _, value := range []string{file, hex.EncodeToString(sum[:])} {
		text, ok := s.plan.Texts.Add([]byte(value))
		if !ok {
			return frame.KindErrorf(roost.Exhausted, "the flow has too many texts; make several flows of it")
		}
		s.plan.Values = append(s.plan.Values, text)
	}
	return nil
}
