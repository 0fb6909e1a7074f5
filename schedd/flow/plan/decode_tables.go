package plan

import (
	"fmt"
	"path"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// table reads a table whose first entry is none.
func table[T any](s *sectionReader, most int, read func(*T)) []T {
	n := s.number(most)
	list := make([]T, 0, min(n, 1<<16))
	for range n {
		var entry T
		if read(&entry); s.err != nil {
			return make([]T, 1)
		}
		list = append(list, entry)
	}
	if len(list) == 0 {
		s.fail("a table has no first entry")
		return make([]T, 1)
	}
	return list
}

func (p *Plan) readTexts(s *sectionReader) {
	n := s.number(maxTexts)
	for id := 1; id < n; id++ {
		b := s.bytes(graph.MaxTextSize)
		if s.err != nil {
			return
		}
		if got, ok := p.Texts.Add(b); !ok || int(got) != id {
			s.fail("text %d is there twice, or there is no room for it", id)
		}
	}
}

// textID reads the number of a text.
func (p *Plan) textID(s *sectionReader) graph.TextID {
	return graph.TextID(s.number(p.Texts.Len() - 1))
}

func (p *Plan) readTemplates(s *sectionReader) {
	p.Templates = table(s, maxTables, func(t *JobTemplate) {
		t.Ad, t.Count = s.text(roost.MaxAdBytes), s.number(roost.MaxTasks)
		t.Columns, t.NodeColumns = s.texts(1<<10, 1<<10), s.texts(len(NodeColumns()), 1<<10)
		t.Source = s.text(1 << 12)
	})
}

func (p *Plan) readValues(s *sectionReader) {
	n := s.number(1 << 30)
	for range n {
		if p.Values = append(p.Values, p.textID(s)); s.err != nil {
			return
		}
	}
}

func (p *Plan) readScripts(s *sectionReader) {
	p.Scripts = table(s, maxTables, func(c *NodeScript) {
		c.Command, c.Defer, c.DeferSeconds = p.textID(s), s.rule(), s.number(1<<31)
		c.DebugFile, c.DebugOutput = p.textID(s), uint8(s.number(DebugStdout|DebugStderr))
	})
}

func (p *Plan) readSettings(s *sectionReader) {
	script := func() uint32 { return uint32(s.number(len(p.Scripts) - 1)) }
	p.Settings = table(s, maxTables, func(n *NodeSettings) {
		n.Directory, n.SavePoint = p.textID(s), p.textID(s)
		n.Pre, n.Post, n.Hold = script(), script(), script()
		n.Tolerance = s.number(roost.MaxTasks)
		s.bits(&n.ToleranceIsShare, &n.FailsFast)
		n.Rules = flow.NodeRules{HasPre: n.Pre != 0, HasPost: n.Post != 0, PreSkip: s.rule(), UnlessExit: s.rule(),
			AbortOn: s.rule(), AbortReturn: s.rule()}
	})
}

func (p *Plan) readCategories(s *sectionReader) {
	p.Categories = table(s, 1<<16, func(c *Category) { c.Name, c.MaxJobs = s.text(1<<12), s.signed(1<<31) })
}

func (p *Plan) readNodes(s *sectionReader) {
	for range s.number(MaxNodes) {
		kind, _ := s.ReadByte()
		flags, err := s.ReadByte()
		if err != nil || kind > byte(graph.ServiceNode) || flags > byte(graph.DoneFlag|graph.NoopFlag) {
			s.fail("a node of kind %d with flags %d", kind, flags)
			return
		}
		id := p.addNode(s, graph.NodeKind(kind))
		if s.err != nil {
			return
		}
		n := p.Graph.Node(id)
		n.Flags, n.Description = graph.NodeFlags(flags), uint32(s.number(len(p.Templates)-1))
		n.Settings, n.Vars = uint32(s.number(len(p.Settings)-1)), uint32(s.number(len(p.Values)))
		n.Line, n.File = uint32(s.number(1<<31)), uint16(s.number(1<<16-1))
		n.Category, n.Retry = uint16(s.number(len(p.Categories)-1)), uint16(s.number(1<<16-1))
		n.Priority = int16(s.signed(1<<15 - 1))
		if s.err == nil {
			p.checkNode(s, id, n)
		}
	}
}

func (p *Plan) addNode(s *sectionReader, kind graph.NodeKind) graph.NodeID {
	if kind == graph.JoinNode {
		return p.Graph.AddJoin()
	}
	name := s.bytes(graph.MaxNameSize)
	if s.err == nil && (len(name) == 0 || slices.ContainsFunc(name, func(b byte) bool { return b <= ' ' })) {
		s.fail("a node has the name %q", name)
	}
	id, isNew, err := p.Graph.AddNode(name, kind)
	if s.err == nil && (err != nil || !isNew) {
		s.fail("node %q is there twice, or there is no room for it", name)
	}
	return id
}

// checkNode refuses a node without what its job needs.
func (p *Plan) checkNode(s *sectionReader, id graph.NodeID, n *graph.Node) {
	t := &p.Templates[n.Description]
	runs := n.Kind != graph.JoinNode && n.Flags&graph.NoopFlag == 0
	switch {
	case runs && t.Count == 0:
		s.fail("node %q has no job", p.Graph.Name(id))
	case len(t.Columns)*t.Count > len(p.Values)-int(n.Vars):
		s.fail("node %q has not the values of its columns", p.Graph.Name(id))
	}
}

func (p *Plan) readArcs(s *sectionReader) {
	s.number(maxArcs)
	total := 0
	for id, n := range p.Graph.Nodes() {
		child := 0
		for range s.number(p.Graph.Len()) {
			d := s.number(2 * p.Graph.Len())
			child += d >> 1
			if total++; s.err != nil || child >= p.Graph.Len() || total > maxArcs || !n.Kind.HasArcs() ||
				!p.Graph.Node(graph.NodeID(child)).Kind.HasArcs() {
				s.fail("node %d has an arc that is not possible", id)
				return
			}
			p.Graph.AddArc(id, graph.NodeID(child), d&1 == 1)
		}
	}
}

func (p *Plan) readFlow(s *sectionReader) {
	s.bits(&p.HasFinal, &p.HasProvisioner, &p.DepthFirst, &p.AlwaysRunPost, &p.StopsAtFailure)
	node := func() graph.NodeID { return graph.NodeID(s.number(max(p.Graph.Len()-1, 0))) }
	p.Final, p.Provisioner = node(), node()
	bound := func() int { return s.number(1 << 31) }
	p.Limits = flow.Limits{Jobs: bound(), IdleTasks: bound(), Pre: bound(), Post: bound()}
	p.Directory, p.Environment = s.text(1<<12), s.texts(1<<16, 1<<20)
	p.Files, p.RescueBase = s.texts(1<<16, 1<<12), s.text(1<<12)
}

// The bounds of the files that a flow writes.
const (
	MaxDotFiles    = 16
	MaxDotCommands = 64 << 10 // bytes
)

func (r *Reports) read(s *sectionReader) {
	r.JobstateLog, r.FirstSequence = s.text(1<<12), s.number(1<<31)
	r.Status.Name, r.Status.MinInterval = s.text(1<<12), s.number(1<<31)
	s.bits(&r.Status.IsAlways)
	for range s.number(MaxDotFiles) {
		d := DotFile{Name: s.text(1 << 12), Source: s.text(1 << 12), Commands: s.text(MaxDotCommands)}
		s.bits(&d.IsUpdated, &d.Numbered)
		r.Dots = append(r.Dots, d)
	}
}

// relativeName returns a file of the flow whose name is not absolute; empty: there is
// none.
func (p *Plan) relativeName() string {
	names := []string{p.RescueBase, p.Reports.JobstateLog, p.Reports.Status.Name}
	for _, d := range p.Reports.Dots {
		names = append(names, d.Name)
	}
	for _, name := range names {
		if name != "" && !path.IsAbs(name) {
			return name
		}
	}
	return ""
}

// check verifies what several sections say together, and finishes the graph.
func (p *Plan) check() error {
	kindOf := func(id graph.NodeID, is bool, kind graph.NodeKind) bool {
		return !is || int(id) < p.Graph.Len() && p.Graph.Node(id).Kind == kind
	}
	finals, provisioners := 0, 0
	for _, n := range p.Graph.Nodes() {
		switch n.Kind {
		case graph.FinalNode:
			finals++
		case graph.ProvisionerNode:
			provisioners++
		}
	}
	for _, t := range p.Templates {
		for _, name := range t.NodeColumns {
			if !slices.Contains(NodeColumns(), name) || slices.Contains(t.Columns, name) {
				return fmt.Errorf("%w: the column %q cannot be filled", roost.Invalid, name)
			}
		}
	}
	switch {
	case !kindOf(p.Final, p.HasFinal, graph.FinalNode), !kindOf(p.Provisioner, p.HasProvisioner, graph.ProvisionerNode),
		finals > 1, provisioners > 1, (finals == 1) != p.HasFinal, (provisioners == 1) != p.HasProvisioner:
		return fmt.Errorf("%w: it has %d FINAL and %d PROVISIONER nodes, and says otherwise", roost.Invalid, finals,
			provisioners)
	case p.Graph.Len() == 0:
		return fmt.Errorf("%w: it has no node", roost.Invalid)
	case !path.IsAbs(p.Directory):
		return fmt.Errorf("%w: its directory %q is not absolute", roost.Invalid, p.Directory)
	case p.relativeName() != "":
		return fmt.Errorf("%w: the name of its file %q is not absolute", roost.Invalid, p.relativeName())
	}
	if cycle := p.Graph.Finish(); cycle != nil {
		return fmt.Errorf("%w: node %s waits for itself", roost.Invalid, p.Graph.Name(cycle[0]))
	}
	return nil
}
