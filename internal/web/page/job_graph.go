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

// drawGraph draws the dependencies of jobs from left to right. Each job is a link to its
// page.
func drawGraph(g document.JobGraph) template.HTML {
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
		height, width, height, template.HTMLEscapeString("dependencies of job "+g.Job.ID))
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
		drawGraphJob(&b, j, places[document.PlainJobID(j.ID)], j.ID == g.Job.ID)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// drawGraphJob draws a job of a graph. own says that the graph is that job's.
func drawGraphJob(b *strings.Builder, j document.GraphJob, at graphPlace, own bool) {
	class, name := stateClass(j.State), j.Name
	if j.State == "" {
		class, name = "unknown", "not shown"
	}
	if own {
		class += " own"
	}
	fmt.Fprintf(b, `<a href="/jobs/%s"><title>%s</title><g class="job %s">`,
		template.HTMLEscapeString(url.PathEscape(j.ID)),
		template.HTMLEscapeString(strings.TrimSpace(j.ID+" "+name+" "+j.State)), class)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="7"/>`, at.x, at.y, graphNodeWidth, graphNodeHeight)
	fmt.Fprintf(b, `<text x="%d" y="%d" class="name">%s</text><text x="%d" y="%d">%s</text></g></a>`, at.x+12, at.y+19,
		template.HTMLEscapeString(cutText(name, 19)), at.x+12, at.y+36,
		template.HTMLEscapeString(cutText(strings.TrimSpace(j.ID+"  "+j.State), 26)))
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
