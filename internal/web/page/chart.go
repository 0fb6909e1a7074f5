package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/chart"
)

// drawChart shows a chart with its title and, where it has several series, their names.
// The hours below it are of a zone.
func drawChart(c chart.Chart, zone *time.Location) template.HTML {
	c.Zone = zone
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="chart"><figcaption>%s`, html.EscapeString(c.Title))
	if len(c.Series) > 1 {
		b.WriteString(`<span class="legend">`)
		for i := range c.Series {
			fmt.Fprintf(&b, `<span><i class="key-%d"></i>%s</span>`, i+1, html.EscapeString(c.Series[i].Name))
		}
		b.WriteString(`</span>`)
	}
	fmt.Fprintf(&b, `</figcaption><div class="scroll" tabindex="0">%s</div></figure>`, c.Draw())
	return template.HTML(b.String())
}

// stepText says how long a window is: "5 minutes".
func stepText(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d%(24*time.Hour) == 0:
		return document.Plural(int(d/(24*time.Hour)), "day")
	case d%time.Hour == 0:
		return document.Plural(int(d/time.Hour), "hour")
	}
	return document.Plural(int(d/time.Minute), "minute")
}
