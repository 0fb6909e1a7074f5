package dag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// finish completes the flow: it looks for cycles, for categories without a use and for
// files that are missing.
func (p *flowParser) finish() {
	g := p.flow.Graph
	if p.flow.Cycle = g.Finish(); p.flow.Cycle != nil {
		p.reportCycle(p.flow.Cycle)
	}
	p.countCategories()
	if !p.opts.SkipFileTests {
		p.checkFiles()
	}
	if len(p.flow.Files) > 0 && g.Len() == 0 && !p.diags.HasErrors() {
		p.diags.add(0, Diagnostic{File: p.flow.Files[0], Summary: "there is no node in this flow",
			Detail: "A JOB line defines one: JOB NAME FILE."})
	}
	p.diags.sort()
	p.fillSources()
}

// reportCycle reports the nodes of a cycle, at the line that defines the first of them.
func (p *flowParser) reportCycle(cycle []graph.NodeID) {
	g := p.flow.Graph
	var names []string
	first := (*graph.Node)(nil)
	for _, id := range cycle {
		if n := g.Node(id); n.Kind != graph.JoinNode {
			names = append(names, g.Name(id))
			if first == nil {
				first = n
			}
		}
	}
	count := len(names)
	names = append(names, names[0])
	p.diags.add(int(first.File), Diagnostic{File: p.flow.Files[first.File], Line: int(first.Line), Column: 1, Width: 1,
		Summary: "nodes wait for each other in a cycle: " + strings.Join(shortened(names), " → "),
		Detail: fmt.Sprintf("None of the %d could ever begin. Remove one of the dependencies between them.",
			count)})
}

// countCategories counts the nodes of each category and warns of those without nodes, or
// without a limit.
func (p *flowParser) countCategories() {
	list := p.flow.Categories
	for _, n := range p.flow.Graph.Nodes() {
		list[n.Category].Nodes++
	}
	for i, c := range list {
		summary := ""
		switch {
		case i == 0:
		case c.Nodes == 0:
			summary = "no node is in the category " + quote(c.Name)
		case c.MaxJobs < 0:
			summary = "the category " + quote(c.Name) + " has no MAXJOBS"
		}
		if summary != "" {
			p.diags.add(int(c.line.file), Diagnostic{File: p.flow.Files[c.line.file], Line: int(c.line.line), Column: 1,
				Width: 1, IsWarning: true, Summary: summary, Detail: "It limits nothing."})
		}
	}
}

// fileKey is a file in a directory.
type fileKey struct{ directory, name graph.TextID }

// fileState is what is known of a file.
type fileState struct{ isThere, isWarned, isReported bool }

// checkFiles looks for the submit descriptions of nodes. One that is missing is a mistake
// if the node can run at once; otherwise other nodes may write it.
func (p *flowParser) checkFiles() {
	states := map[fileKey]fileState{}
	for _, n := range p.flow.Graph.Nodes() {
		if n.Kind == graph.JoinNode || n.Kind == graph.SubflowNode || n.Description&inlineBit != 0 ||
			n.Description == 0 || n.Flags != 0 {
			continue
		}
		settings := &p.flow.Settings[n.Settings]
		key := fileKey{settings.Directory, graph.TextID(n.Description)}
		state, known := states[key]
		if known && (state.isThere || state.isReported) {
			continue
		}
		name := joinPath(p.flow.Texts.Text(key.directory), p.flow.Texts.Text(key.name))
		if !known {
			state.isThere = p.files.Exists(name)
		}
		mayAppear := n.Parents > 0 || settings.Scripts[PreScript] != 0 || n.Kind == graph.FinalNode
		if !state.isThere && !(mayAppear && state.isWarned) {
			p.reportMissing(n, name, mayAppear)
			state.isWarned, state.isReported = true, !mayAppear
		}
		states[key] = state
	}
}

// reportMissing reports that the submit description of a node is missing.
func (p *flowParser) reportMissing(n *graph.Node, name string, mayAppear bool) {
	cure := "The node needs it at once. Names are relative to the working directory, or to DIR of the node or splice."
	if mayAppear {
		cure = "It has to be there when the node begins."
	}
	p.diags.add(int(n.File), Diagnostic{File: p.flow.Files[n.File], Line: int(n.Line), Column: 1, Width: 1,
		IsMissing: true, IsWarning: mayAppear, Command: n.Kind.String(), Summary: "there is no file " + quote(name),
		Detail: cure})
}

// fillSources gives those diagnostics their lines that were found when the files had been
// read. The list is sorted.
func (p *flowParser) fillSources() {
	list := p.diags.List
	for i := 0; i < len(list); {
		name, last := list[i].File, i
		for last < len(list) && list[last].File == name {
			last++
		}
		p.fillFile(name, list[i:last])
		i = last
	}
}

// fillFile reads the lines of diagnostics of one file.
func (p *flowParser) fillFile(name string, list []Diagnostic) {
	lacksSource := func(d Diagnostic) bool { return d.Line > 0 && d.Source == "" && d.Column == 1 }
	if !slices.ContainsFunc(list, lacksSource) {
		return
	}
	in, err := p.files.Open(name)
	if err != nil {
		return
	}
	defer in.Close()
	next, number := sourceLines(in)
	for i := range list {
		if !lacksSource(list[i]) {
			continue
		}
		for number() < list[i].Line {
			text, err := next()
			if err != nil {
				return
			}
			if number() == list[i].Line {
				list[i].Source = string(text[:min(len(text), maxSource)])
				list[i].Width = max(1, len(list[i].Source))
			}
		}
		if j := i; j > 0 && list[j-1].Line == list[j].Line && list[j].Source == "" {
			list[j].Source, list[j].Width = list[j-1].Source, max(1, len(list[j-1].Source))
		}
	}
}
