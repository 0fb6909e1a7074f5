package dag

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// Rescue is what a rescue file says of a flow that ended early. It names the nodes that
// are done, and how often others may still be tried again. Save points have the same
// form.
//
// Parts of a node are never in it: the PRE script of a node that failed runs again.
type Rescue struct {
	Done    []graph.NodeID // in the order of the graph
	Retries []RemainingRetry
}

// RemainingRetry is a node that is not done, and the number of its retries that are left.
type RemainingRetry struct {
	Node  graph.NodeID
	Count int
}

// ReadRescue reads a rescue file of a flow.
func ReadRescue(files FileReader, name string, flow *Flow) (*Rescue, *Diagnostics) {
	r := &Rescue{}
	table := map[string]*dagCommand{
		"DONE":  {name: "DONE", syntax: "DONE NODE", applies: func(p *fileParser) { readDone(p, r) }},
		"RETRY": {name: "RETRY", syntax: "RETRY NODE COUNT", applies: func(p *fileParser) { readRetry(p, r) }},
	}
	for name, c := range commandTable() {
		if table[name] == nil {
			table[name] = &dagCommand{name: c.name, syntax: c.syntax, applies: refuseInRescue, hasBlock: c.hasBlock}
		}
	}
	p := &flowParser{files: files, table: table, numbers: map[string]uint16{}, suggestions: maxSuggestions}
	whole := *flow
	whole.Files = nil
	p.flow = &whole
	s := newScope(nil, 0)
	if in, err := files.Open(name); err != nil {
		p.reportUnreadable(name, 1, err, nil)
	} else {
		in.Close()
		p.parseFile(s, name, 2, nil)
	}
	r.sort()
	p.diags.sort()
	return r, &p.diags
}

func readDone(p *fileParser, r *Rescue) {
	if t, ok := p.target(false); ok && p.end() {
		r.Done = append(r.Done, t.node)
	}
}

func readRetry(p *fileParser, r *Rescue) {
	t, ok := p.target(false)
	if !ok {
		return
	}
	if count, ok := p.integer("number of retries", 0, maxRetries); ok && p.end() {
		r.Retries = append(r.Retries, RemainingRetry{t.node, count})
	}
}

// refuseInRescue reports a command that only a whole DAG file has. The first one tells
// that the file is none of a rescue, so the others are not read.
func refuseInRescue(p *fileParser) {
	p.lex.start, p.lex.end = 0, len(p.line)
	p.fail("a rescue file has no "+p.command.displayName(), "It has DONE and RETRY lines only. Rescue files that are "+
		"whole DAG files, as old versions of HTCondor write them, are submitted themselves.")
	p.full = true
}

// sort brings the nodes into the order of the graph. Of several lines for one node the
// last one counts.
func (r *Rescue) sort() {
	slices.Sort(r.Done)
	r.Done = slices.Compact(r.Done)
	slices.Reverse(r.Retries)
	slices.SortStableFunc(r.Retries, func(a, b RemainingRetry) int { return cmp.Compare(a.Node, b.Node) })
	r.Retries = slices.CompactFunc(r.Retries, func(a, b RemainingRetry) bool { return a.Node == b.Node })
}

// Apply marks the nodes of a flow as the rescue file says.
func (r *Rescue) Apply(flow *Flow) {
	for _, id := range r.Done {
		if n := flow.Graph.Node(id); n.Kind.HasArcs() {
			n.Flags |= graph.DoneFlag
		}
	}
	for _, left := range r.Retries {
		flow.Graph.Node(left.Node).Retry = uint16(left.Count)
	}
}

// RescueHeader is what the comments of a rescue file say. Nothing reads them again.
type RescueHeader struct {
	Flow    string // the first DAG file
	Created string // a time, as people read it
	Failed  []graph.NodeID
}

// maxFailedNames bounds the failed nodes that the comments name.
const maxFailedNames = 1000

// WriteRescue writes a rescue file.
func WriteRescue(to io.Writer, flow *Flow, r *Rescue, h RescueHeader) error {
	w := bufio.NewWriterSize(to, firstBuffer)
	stats := flow.Graph.Statistics()
	fmt.Fprintf(w, "# Rescue DAG file, created after running\n#   the %s DAG file\n# Created %s\n", oneLine(h.Flow),
		oneLine(h.Created))
	fmt.Fprintf(w, "# Rescue DAG version: 2.0.1 (partial)\n#\n# Total number of Nodes: %d\n"+
		"# Nodes premarked DONE: %d\n# Nodes that failed: %d\n#   ", stats.Nodes-stats.ByKind[graph.JoinNode],
		len(r.Done), len(h.Failed))
	for _, id := range h.Failed[:min(len(h.Failed), maxFailedNames)] {
		fmt.Fprintf(w, "%s,", flow.Graph.NameBytes(id))
	}
	w.WriteString("<ENDLIST>\n\n")
	var word []byte
	for _, id := range r.Done {
		word = appendWord(word[:0], flow.Graph.NameBytes(id))
		w.WriteString("DONE ")
		w.Write(word)
		w.WriteByte('\n')
	}
	for _, left := range r.Retries {
		fmt.Fprintf(w, "RETRY %s %d\n", appendWord(word[:0], flow.Graph.NameBytes(left.Node)), left.Count)
	}
	return w.Flush()
}

// oneLine replaces what would end a comment.
func oneLine(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c == '\n' || c == '\r' {
			out[i] = ' '
		}
	}
	return string(out)
}

// appendWord adds a text as a word of a DAG file, in quotes where it needs them.
func appendWord(to, text []byte) []byte {
	plain := len(text) > 0
	for _, c := range text {
		plain = plain && !isBlank(c) && c != '"' && c != '\'' && c != '\\'
	}
	if plain {
		return append(to, text...)
	}
	to = append(to, '"')
	for _, c := range text {
		if c == '"' || c == '\\' {
			to = append(to, '\\')
		}
		to = append(to, c)
	}
	return append(to, '"')
}

// The numbers of rescue files of one flow.
const (
	DefaultRescues = 100 // that are used before the last one is written over
	MaxRescues     = 999
)

// RescueName is the name of a rescue file. That of a flow of several DAG files has _multi
// in it.
func RescueName(files []string, number int) string {
	multi := ""
	if len(files) > 1 {
		multi = "_multi"
	}
	return fmt.Sprintf("%s%s.rescue%03d", files[0], multi, number)
}

// NewestRescue is the number of the newest rescue file of a flow; 0 if there is none.
func NewestRescue(reader FileReader, files []string) int {
	for number := MaxRescues; number > 0; number-- {
		if reader.Exists(RescueName(files, number)) {
			return number
		}
	}
	return 0
}
