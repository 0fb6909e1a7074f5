package page

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/roost-batch/roost"
)

// BarPart is one part of a bar.
type BarPart struct {
	Value float64
	Class string // of the style: fill-running, fill-ok, …
	Label string // "12 running"
}

// barWidth is the width of a bar in units of its own.
const barWidth = 1000.0

// stackBar draws parts of a whole beside each other. A part that is not 0 is never
// narrower than a thousandth. The labels are read aloud, because colours are not.
func stackBar(parts ...BarPart) template.HTML { return drawBar("stack", 12, parts) }

// stripBar is a taller stackBar, for the tasks of a job in their order.
func stripBar(parts []BarPart) template.HTML { return drawBar("strip", 22, parts) }

func drawBar(class string, height int, parts []BarPart) template.HTML {
	sum := 0.0
	var labels []string
	for _, p := range parts {
		if p.Value > 0 {
			sum += p.Value
			if len(labels) < maxLabels {
				labels = append(labels, p.Label)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="%s" viewBox="0 0 %g %d" preserveAspectRatio="none" role="img" aria-label="%s">`, class,
		barWidth, height, template.HTMLEscapeString(strings.Join(labels, ", ")))
	at := 0.0
	for _, p := range parts {
		if p.Value <= 0 {
			continue
		}
		width := max(p.Value/sum*barWidth, 1)
		fmt.Fprintf(&b, `<rect x="%.2f" width="%.2f" height="%d" class="%s"><title>%s</title></rect>`, at, width, height,
			template.HTMLEscapeString(p.Class), template.HTMLEscapeString(p.Label))
		at += width
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// maxLabels bounds what a screen reader has to read of one bar.
const maxLabels = 12

// countParts are the tasks of a job by state, in the order of a life, as parts of a bar.
func countParts(counts map[string]uint32) []BarPart {
	failed := counts["failed"]
	var parts []BarPart
	add := func(n uint32, class, word string) {
		if n > 0 {
			parts = append(parts, BarPart{float64(n), class, fmt.Sprintf("%d %s", n, word)})
		}
	}
	add(counts[roost.Completed.String()]-min(failed, counts[roost.Completed.String()]), "fill-ok", "completed")
	add(failed, "fill-bad", "failed")
	for _, s := range []roost.TaskState{roost.Exiting, roost.Running, roost.Starting} {
		add(counts[s.String()], "fill-running", s.String())
	}
	for _, s := range []roost.TaskState{roost.Suspended, roost.Held, roost.Blocked} {
		add(counts[s.String()], "fill-warn", s.String())
	}
	add(counts[roost.Idle.String()], "fill-idle", roost.Idle.String())
	add(counts[roost.Removed.String()], "fill-free", roost.Removed.String())
	return parts
}
