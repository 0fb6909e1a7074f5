package flowplan

import (
	"fmt"
	"path"
	"slices"

	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// Options says who submits a flow, and how its variables are set.
type Options struct {
	// Dir is what the names of the DAG files are relative to. Files has to be set.
	Job submit.ParseOptions
	// variables without PREPEND or APPEND are set behind the submit description
	AppendVariables bool
	Seed            uint64 // of $RANDOM_INTEGER and $RANDOM_CHOICE
}

// Jobs is what the nodes of a flow run.
type Jobs struct {
	Templates []Template     // by NodeJob.Template; the first one is none
	Values    []graph.TextID // in the texts of the flow: for each node those of NodeJob
	Nodes     []NodeJob      // by node
}

// Template is what the jobs of some nodes have in common.
type Template struct {
	Job     submit.Job // without columns
	Columns []string   // a node has a value of each for each task
	// columns of DeferredColumns to which the ad refers
	NodeColumns []string
	Source      string // the file that it is from
}

// NodeJob is what one node runs.
type NodeJob struct {
	Template uint32 // 0: it runs no job
	// place of its values in Jobs.Values: for each column one for each task
	Values uint32
}

// DeferredColumns are the variables of DAGMan that are known when a node begins.
func DeferredColumns() []string {
	return []string{"JOB", "RETRY", "DAGManJobId", "DAG_STATUS", "FAILED_COUNT", "DAG_PARENT_NAMES"}
}

// The bounds of a flow.
const (
	maxTemplates   = 20_000
	nodesOfArray   = 50_000 // compiled at a time
	maxValues      = 1 << 30
	maxDescription = 1 << 20 // bytes
)

// Compile compiles the jobs of all nodes. If the diagnostics contain an error, the jobs
// are not complete.
func Compile(f *dag.Flow, opts Options) (*Jobs, *dag.Diagnostics) {
	c := &compiler{flow: f, options: opts, diags: &dag.Diagnostics{}, reported: map[string]bool{},
		templates: map[string]uint32{},
		jobs:      &Jobs{Templates: make([]Template, 1), Nodes: make([]NodeJob, f.Graph.Len())}}
	for _, g := range c.groupNodes() {
		c.compileGroup(g)
		if c.isFull {
			break
		}
	}
	return c.jobs, c.diags
}

// compiler is the state of compiling one flow.
type compiler struct {
	flow      *dag.Flow
	options   Options
	jobs      *Jobs
	diags     *dag.Diagnostics
	reported  map[string]bool
	templates map[string]uint32 // by all that a template has
	buffer    []byte
	isFull    bool // a bound was reached, which was reported
}

// groupKey is what the nodes of a group have in common.
type groupKey struct {
	description uint32
	directory   graph.TextID
}

// nodeGroup are the nodes that run one description in one directory.
type nodeGroup struct {
	key   groupKey
	nodes []graph.NodeID
}

// groupNodes groups the nodes that run jobs, in the order of their first nodes.
func (c *compiler) groupNodes() []*nodeGroup {
	numbers := map[groupKey]int{}
	var groups []*nodeGroup
	for id, n := range c.flow.Graph.Nodes() {
		if n.Kind == graph.JoinNode || n.Kind == graph.SubflowNode || n.Flags&graph.NoopFlag != 0 {
			continue
		}
		key := groupKey{description: n.Description}
		if n.Settings != 0 {
			key.directory = c.flow.Settings[n.Settings].Directory
		}
		number, ok := numbers[key]
		if !ok {
			number = len(groups)
			numbers[key] = number
			groups = append(groups, &nodeGroup{key: key})
		}
		groups[number].nodes = append(groups[number].nodes, id)
	}
	return groups
}

// description is the text that the nodes of a group run.
type description struct {
	name     string // of its file, as messages have it
	text     string
	before   int    // lines of the file in front of it
	dir      string // absolute directory of the jobs
	isInline bool
}

// describe reads what the nodes of a group run.
func (c *compiler) describe(g *nodeGroup) (description, bool) {
	d := description{dir: path.Join(c.options.Job.Dir, "/")}
	if dir := c.flow.Texts.Text(g.key.directory); path.IsAbs(dir) {
		d.dir = path.Clean(dir)
	} else {
		d.dir = path.Join(c.options.Job.Dir, dir)
	}
	name, inline := c.flow.Description(c.flow.Graph.Node(g.nodes[0]))
	if inline != nil {
		d.isInline, d.name, d.text = true, c.flow.Files[inline.File], inline.Text
		d.before = int(inline.Line) - 1
		return d, true
	}
	d.name = name
	if dir := c.flow.Texts.Text(g.key.directory); dir != "" && dir != "." && !path.IsAbs(name) {
		d.name = path.Join(dir, name)
	}
	full := name
	if !path.IsAbs(name) {
		full = path.Join(d.dir, name)
	}
	src, err := c.options.Job.Files.Read(full, maxDescription)
	if err != nil {
		c.report(g.nodes, dag.Diagnostic{IsMissing: true, File: d.name, Summary: "this file cannot be read",
			Detail: err.Error() + "."})
		return d, false
	}
	d.text = string(src)
	return d, true
}

// compileGroup compiles the nodes of one description.
func (c *compiler) compileGroup(g *nodeGroup) {
	d, ok := c.describe(g)
	if !ok {
		return
	}
	table := c.variablesOf(g.nodes)
	form := formOf(d)
	for _, part := range table.partition(form.hasShapes()) {
		c.compilePart(d, form, part)
	}
}

// compilePart compiles nodes whose variables have the same shapes.
func (c *compiler) compilePart(d description, form descriptionForm, part *variableTable) {
	if c.isFull {
		return
	}
	if len(c.jobs.Templates) > maxTemplates {
		c.isFull = true
		c.report(part.nodes, dag.Diagnostic{File: d.name, Summary: "the nodes run too many different jobs",
			Detail: fmt.Sprintf("There can be %d templates. Nodes share one if their variables differ in words, and "+
				"not in how many words there are, or in what kind of job it is.", maxTemplates)})
		return
	}
	if len(part.nodes) > nodesOfArray {
		for low := 0; low < len(part.nodes); low += nodesOfArray {
			c.compilePart(d, form, part.slice(low, min(low+nodesOfArray, len(part.nodes))))
		}
		return
	}
	job, needed, ok := form.compile(c, d, part)
	switch {
	case len(needed) > 0:
		parts := part.partitionBy(needed)
		if len(parts) == 1 {
			panic(fmt.Sprintf("flowplan: %q are needed, and are the same for all nodes", needed))
		}
		for _, p := range parts {
			c.compilePart(d, form, p)
		}
	case ok:
		c.addNodes(d, part, job)
	}
}

// compiledJob is the job of some nodes. Its columns have the tasks of one node after
// those of the other.
type compiledJob struct {
	job     submit.Job
	columns []jobspec.TaskColumn
	perNode int // tasks
}

// addNodes adds a template and the values of its nodes.
func (c *compiler) addNodes(d description, part *variableTable, j compiledJob) {
	t := Template{Job: j.job, Source: d.name}
	t.Job.Columns, t.Job.Count = nil, j.perNode
	for _, column := range j.columns {
		t.Columns = append(t.Columns, column.Name)
	}
	text := t.Job.Ad.String()
	for _, name := range DeferredColumns() {
		if containsReference(text, name) {
			t.NodeColumns = append(t.NodeColumns, name)
		}
	}
	key := fmt.Sprintf("%d %q %q %q %s", j.perNode, t.Columns, t.NodeColumns, d.name, text)
	number, ok := c.templates[key]
	if !ok {
		number = uint32(len(c.jobs.Templates))
		c.templates[key] = number
		c.jobs.Templates = append(c.jobs.Templates, t)
	}
	c.jobs.Values = slices.Grow(c.jobs.Values, len(part.nodes)*len(j.columns)*j.perNode)
	for i, id := range part.nodes {
		c.jobs.Nodes[id] = NodeJob{Template: number, Values: uint32(len(c.jobs.Values))}
		if part.isUniform {
			i = 0
		}
		for _, column := range j.columns {
			for _, v := range column.Values[i*j.perNode : (i+1)*j.perNode] {
				c.buffer = append(c.buffer[:0], v...)
				text, ok := c.flow.Texts.Add(c.buffer)
				if !ok || len(c.jobs.Values) >= maxValues {
					c.isFull = true
					c.report([]graph.NodeID{id}, dag.Diagnostic{File: d.name,
						Summary: "the values of the nodes are too big",
						Detail:  "One has more than 1 MiB, or there are too many. Put them into files."})
					return
				}
				c.jobs.Values = append(c.jobs.Values, text)
			}
		}
	}
}
