package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"github.com/roost-batch/roost/internal/document"
)

// The sizes of a graph, in units of its own.
const (
	graphNodeWidth, graphNodeHeight = 168, 46
	graphGapX, graphGapY            = 64, 16
	graphMargin                     = 6
)

// graphPlace is the upper left corner of a job in a graph.
type graphPlace struct{ x, y int }

// graphNode is what is drawn of a job, or of a node of a flow.
type graphNode struct {
	name, line, title string
	class             string
	link              string // empty: it leads nowhere
}

// drawGraph draws the dependencies of jobs from left to right. Each job is a link to its
// page.
func drawGraph(g document.JobGraph) template.HTML {
	return drawNodes(g, "dependencies of job "+g.Job.ID, func(j document.GraphJob) graphNode {
		n := graphNode{name: j.Name, class: stateClass(j.State), link: "/jobs/" + url.PathEscape(j.ID)}
		if j.State == "" {
			n.class, n.name = "unknown", "not shown"
		}
		if j.ID == g.Job.ID {
			n.class += " own"
		}
		n.title, n.line = strings.TrimSpace(j.ID+" "+n.name+" "+j.State), strings.TrimSpace(j.ID+"  "+j.State)
		return n
	})
}

// drawFlow draws the nodes of a flow. Each is a link to the page of its job.
func drawFlow(f document.FlowNodes) template.HTML {
	nodes := map[string]document.FlowNode{}
	for _, n := range f.Nodes {
		nodes[n.Name] = n
	}
	return drawNodes(f.Graph(), "nodes of flow "+f.Job.ID, func(j document.GraphJob) graphNode {
		of := nodes[j.ID]
		n := graphNode{name: of.Name, class: flowClass(of.State), line: of.State, title: of.Name + " " + of.State}
		if of.Reason != "" {
			n.title += ": " + of.Reason
		}
		if of.Attempt > 0 {
			n.line += fmt.Sprintf("  attempt %d", of.Attempt+1)
		}
		if of.Job != "" {
			n.link = "/jobs/" + url.PathEscape(of.Job)
		}
		return n
	})
}

// flowClass is the class that the style sheet has for the state of a node.
func flowClass(state string) string {
	switch state {
	case "done":
		return "completed"
	case "pre", "job", "post":
		return "running"
	case "failed":
		return "failed"
	case "futile":
		return "removed"
	}
	return "idle"
}

// flowParts are the nodes of a flow by state, for a bar.
func flowParts(states map[string]uint32) (parts []BarPart) {
	for _, s := range []struct{ state, class string }{{"done", "fill-ok"}, {"failed", "fill-bad"},
		{"pre", "fill-running"}, {"job", "fill-running"},
		{"post", "fill-running"}, {"pre-ready", "fill-warn"}, {"job-ready", "fill-warn"},
		{"post-ready", "fill-warn"}, {"waiting", "fill-idle"}, {"futile", "fill-free"}} {
		if n := states[s.state]; n > 0 {
			parts = append(parts, BarPart{float64(n), s.class, fmt.Sprintf("%d %s", n, s.state)})
		}
	}
	return parts
}

// drawNodes draws a graph from left to right.
func drawNodes(g document.JobGraph, label string, of func(document.GraphJob) graphNode) template.HTML {
	places, rows, columns, longest := map[string]graphPlace{}, map[int]int{}, 0, 0
	for _, j := range g.Jobs {
		places[document.PlainJobID(j.ID)] = graphPlace{graphMargin + j.Column*(graphNodeWidth+graphGapX),
			graphMargin + rows[j.Column]*(graphNodeHeight+graphGapY)}
		rows[j.Column]++
		columns, longest = max(columns, j.Column+1), max(longest, rows[j.Column])
	}
	width := columns*(graphNodeWidth+graphGapX) - graphGapX + 2*graphMargin
	height := longest*(graphNodeHeight+graphGapY) - graphGapY + 2*graphMargin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="graph" viewBox="0 0 %d %d" width="%d" height="%d" role="group" aria-label="%s">`, width,
		height, width, height, template.HTMLEscapeString(label))
	b.WriteString(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" ` +
		`orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>`)
	for _, d := range g.Dependencies {
		arrow := ""
		if d.IsOrdered() {
			arrow = ` marker-end="url(#arrow)"`
		}
		fmt.Fprintf(&b, `<path class="edge %s"%s d="%s"><title>%s</title></path>`, edgeClass(d), arrow,
			edgePath(places[d.From], places[d.To]), template.HTMLEscapeString(d.To+" "+d.Type+" "+d.From))
	}
	for _, j := range g.Jobs {
		drawGraphNode(&b, of(j), places[document.PlainJobID(j.ID)])
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func drawGraphNode(b *strings.Builder, n graphNode, at graphPlace) {
	if n.link != "" {
		fmt.Fprintf(b, `<a href="%s">`, template.HTMLEscapeString(n.link))
	}
	fmt.Fprintf(b, `<g class="job %s"><title>%s</title>`, n.class, template.HTMLEscapeString(n.title))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="7"/>`, at.x, at.y, graphNodeWidth, graphNodeHeight)
	fmt.Fprintf(b, `<text x="%d" y="%d" class="name">%s</text><text x="%d" y="%d">%s</text></g>`, at.x+12, at.y+19,
		template.HTMLEscapeString(cutText(n.name, 19)), at.x+12, at.y+36,
		template.HTMLEscapeString(cutText(n.line, 26)))
	if n.link != "" {
		b.WriteString("</a>")
	}
}

// edgeClass is the kind of a dependency: on success, on failure, or on neither.
func edgeClass(d document.JobDependency) string {
	switch {
	case strings.HasPrefix(d.Type, "afterok"):
		return "ok"
	case strings.HasPrefix(d.Type, "afternotok"):
		return "failed"
	}
	return "any"
}

// edgePath leads from the right of a job to the left of another one. Backwards, or in the
// same column, it leads to its right.
func edgePath(from, to graphPlace) string {
	const bend = graphGapX / 2
	x1, y1, x2, y2 := from.x+graphNodeWidth, from.y+graphNodeHeight/2, to.x, to.y+graphNodeHeight/2
	end := x2 - bend
	if x2 < x1 {
		x2 = to.x + graphNodeWidth
		end = x2 + bend
	}
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, end, y2, x2, y2)
}

// cutText is a text of at most so many characters.
func cutText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
