package page

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/roost-batch/roost/internal/document"
)

// drawTimeline shows what of the time of a task's attempts is useful, as a bar with its
// legend.
func drawTimeline(t document.CheckpointTimeline) template.HTML {
	var b strings.Builder
	b.WriteString(string(stripBar(timelineParts(&t))))
	fmt.Fprintf(&b, `<ul class="legend"><li>%s in all</li>`, spanText(t.Wall))
	for _, p := range workParts(t.Useful, t.Lost, t.Unsaved) {
		if p.Value > 0 {
			fmt.Fprintf(&b, `<li><i class="%s"></i>%s %s</li>`, p.Class, spanText(p.Value), p.Label)
		}
	}
	fmt.Fprintf(&b, `<li>%s, %s frozen for them</li><li>%s, which saved %s</li></ul>`,
		document.Plural(len(t.Images), "checkpoint"), millisecondText(t.Frozen),
		document.Plural(t.Restores, "restore"), spanText(t.Saved))
	return template.HTML(b.String())
}

// timelineParts are the attempts of a task in their order, as parts of a bar.
func timelineParts(t *document.CheckpointTimeline) (parts []BarPart) {
	for i := range t.Attempts {
		a := &t.Attempts[i]
		for _, p := range workParts(a.Useful, a.Lost, a.Unsaved) {
			p.Label = fmt.Sprintf("attempt %d: %s %s", a.Attempt, spanText(p.Value), p.Label)
			parts = append(parts, p)
		}
	}
	return parts
}

// workParts are seconds of work by what became of them.
func workParts(useful, lost, unsaved float64) []BarPart {
	return []BarPart{{useful, "fill-ok", "useful"}, {lost, "fill-bad", "lost"}, {unsaved, "fill-warn", "not saved yet"}}
}
