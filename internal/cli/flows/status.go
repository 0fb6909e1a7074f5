package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// nodeStates are the states of nodes in the order of their life, and words for people.
var nodeStates = []struct{ name, text string }{
	{"done", "done"}, {"pre", "run their PRE script"}, {"job", "have jobs in the queue"},
	{"post", "run their POST script"}, {"pre-ready", "ready for their PRE script"},
	{"job-ready", "ready for their job"},
	{"post-ready", "ready for their POST script"}, {"waiting", "wait for others"}, {"failed", "failed"},
	{"futile", "cannot run, as others failed"},
}

// statusFlags are the flags of roost flow status.
func statusFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: "nodes", Usage: "list the nodes, too"},
		&ucli.StringSliceFlag{Name: "state", Usage: "of the nodes only those in this `STATE`; may be repeated"},
		&ucli.StringSliceFlag{Name: "node", Usage: "of the nodes only this `NODE`; may be repeated"},
	}
}

// showFlows shows how flows go; without names all of the caller's in the queue.
func showFlows(c *frame.Invocation, args []string) error {
	for _, state := range c.StringsFlag("state") {
		if !slices.ContainsFunc(nodeStates, func(s struct{ name, text string }) bool { return s.name == state }) {
			return frame.UsageErrorf("--state %s: there is no such state of nodes; roost-flow(1) lists them", state)
		}
	}
	list, err := jobs.Flows(c, args)
	if err != nil {
		return err
	}
	withNodes := c.Flag("nodes") || len(c.StringsFlag("state"))+len(c.StringsFlag("node")) > 0
	documents := []frame.JSONDocument{}
	for i, s := range list {
		var nodes []*scheddapi.FlowNode
		if withNodes {
			if nodes, err = flowNodes(c, s.GetId()); err != nil {
				return err
			}
		}
		if c.WantsJSON() {
			documents = append(documents, statusDocument(s, nodes, withNodes))
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		printFlow(c.Stdout, s)
		for _, n := range nodes {
			printNode(c.Stdout, n)
		}
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"flows": documents})
	}
	return nil
}

// flowNodes are the nodes of a flow that the flags ask for.
func flowNodes(c *frame.Invocation, id string) (nodes []*scheddapi.FlowNode, err error) {
	s, err := c.ConnectSchedd()
	if err != nil {
		return nil, err
	}
	err = c.Retry(frame.AskTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		nodes = nil
		stream, err := s.ListFlowNodes(ctx, &scheddapi.FlowNodesRequest{Id: id, States: c.StringsFlag("state"),
			Names: c.StringsFlag("node")})
		for err == nil {
			var part *scheddapi.FlowNodes
			if part, err = stream.Recv(); err == nil {
				nodes = append(nodes, part.GetNodes()...)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return frame.DecodeError(err)
	})
	return nodes, err
}

func printFlow(w io.Writer, s *scheddapi.JobStatus) {
	f := s.GetFlow()
	state := f.GetPhase()
	if document.IsFinal(s) || f == nil {
		if state = s.GetState(); s.GetExit().GetCode() != 0 {
			state = "failed"
		}
	}
	if f.GetHalted() {
		state += ", halted"
	}
	fmt.Fprintf(w, "%s %s: %s\n", s.GetId(), document.PrintableText(s.GetName()), state)
	if s.GetReason() != "" {
		fmt.Fprintf(w, "  %s\n", document.PrintableText(s.GetReason()))
	}
	if f == nil {
		return
	}
	for _, state := range nodeStates {
		if n := f.GetStates()[state.name]; n > 0 {
			fmt.Fprintf(w, "  %6d %s\n", n, state.text)
		}
	}
	l := f.GetLimits()
	var limits []string
	for _, one := range []struct {
		name string
		n    uint32
	}{{"jobs", l.GetJobs()}, {"idle tasks", l.GetIdle()}, {"PRE scripts", l.GetPre()}, {"POST scripts", l.GetPost()}} {
		if one.n > 0 {
			limits = append(limits, fmt.Sprintf("%d %s", one.n, one.name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.GetCategories())) {
		if n := l.GetCategories()[name]; n >= 0 {
			limits = append(limits, fmt.Sprintf("%d jobs of %s", n, document.PrintableText(name)))
		}
	}
	if len(limits) > 0 {
		fmt.Fprintf(w, "  at most %s at a time\n", strings.Join(limits, ", "))
	}
	for _, x := range f.GetFailures() {
		job := ""
		if x.GetJob() != "" {
			job = " (job " + x.GetJob() + ")"
		}
		fmt.Fprintf(w, "  failed: %s%s: %s\n", document.PrintableText(x.GetNode()), job,
			document.PrintableText(x.GetReason()))
	}
}

func printNode(w io.Writer, n *scheddapi.FlowNode) {
	line := fmt.Sprintf("  %s: %s", document.PrintableText(n.GetName()), n.GetState())
	if n.GetAttempt() > 0 {
		line += fmt.Sprintf(", tried again %s", document.Plural(int(n.GetAttempt()), "time"))
	}
	if n.GetJob() != "" {
		line += ", job " + n.GetJob()
	}
	if n.GetReason() != "" {
		line += ": " + document.PrintableText(n.GetReason())
	}
	fmt.Fprintln(w, line)
}

// statusDocument is how a flow goes, for programs.
func statusDocument(s *scheddapi.JobStatus, nodes []*scheddapi.FlowNode, withNodes bool) frame.JSONDocument {
	f := s.GetFlow()
	d := frame.JSONDocument{"id": s.GetId(), "name": s.GetName(), "owner": s.GetOwner(), "reason": s.GetReason(),
		"phase": f.GetPhase(), "halted": f.GetHalted(), "status": f.GetStatus(), "nodes": f.GetNodes(),
		"states": f.GetStates(), "number": f.GetNumber(), "limits": limitsDocument(f.GetLimits())}
	if f == nil || document.IsFinal(s) {
		d["phase"] = "ended"
	}
	failures := []frame.JSONDocument{}
	for _, x := range f.GetFailures() {
		failures = append(failures, frame.JSONDocument{"node": x.GetNode(), "reason": x.GetReason(), "job": x.GetJob()})
	}
	d["failures"] = failures
	if withNodes {
		list := []document.FlowNode{}
		for _, n := range nodes {
			list = append(list, document.FlowNodeOf(n))
		}
		d["node_list"] = list
	}
	return d
}

func limitsDocument(l *scheddapi.FlowLimits) frame.JSONDocument {
	categories := l.GetCategories()
	if categories == nil {
		categories = map[string]int32{}
	}
	return frame.JSONDocument{"jobs": l.GetJobs(), "idle": l.GetIdle(), "pre": l.GetPre(), "post": l.GetPost(),
		"categories": categories}
}
