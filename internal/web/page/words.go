package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/chart"
	"github.com/roost-batch/roost/internal/web/view"
)

// functions are what templates can call. Times are written in the zone.
func functions(zone *time.Location) template.FuncMap {
	return template.FuncMap{
		"current": currentPage, "state": stateMark,
		"time": func(at string) template.HTML { return timeElement(at, "", zone) },
		"ago":  func(at string) template.HTML { return timeElement(at, agoForm, zone) },
		"epoch": func(g document.GangEpoch) template.HTML { // which is of numbers and words of ours alone
			return template.HTML(g.Text(string(timeElement(g.Committed, agoForm, zone))))
		},
		"jobrows": func(jobs []document.Job, shown []view.LayoutColumn) template.HTML {
			return jobRows(jobs, shown, zone)
		},
		"bytes":  byteText,
		"number": numberText, "cores": coresText, "span": spanText, "milliseconds": millisecondText,
		"percent": percentText,
		"stack":   stackBar, "strip": stripBar, "query": withQuery, "join": strings.Join,
		"list": func(parts ...any) []any { return parts },
		"part": func(value float64, class, label string) BarPart { return BarPart{value, class, label} },
		"held": func(a document.ResourceAmount) float64 { return max(a.Total-a.Free, 0) }, "capital": capitalText,
		"document": compactJSON, "stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"health": healthParts, "updated": updateParts, "hostport": hostPort,
		"counts": countParts, "terminal": TerminalText,
		"amounts": amountParts, "sizes": sizeParts,
		"stacked":   func(all []BarPart) template.HTML { return stackBar(all...) },
		"certainty": certaintyText, "class": func(i int) float64 { return math.Ldexp(1, min(i, 62)) },
		"reason": waitReasonText, "waiting": waitingTasks,
		"chart":  func(c chart.Chart) template.HTML { return drawChart(c, zone) },
		"length": stepText,
		"graph":  drawGraph, "flowgraph": drawFlow, "flowparts": flowParts, "flowclass": flowClass,
		"flowstates": document.FlowStates,
		"later":      laterText, "few": fewOf, "worked": drawTimeline, "newest": newestOf,
	}
}

// currentPage marks the link of the navigation that leads to the present page.
func currentPage(path, link string) template.HTMLAttr {
	if path == link || link != "/" && strings.HasPrefix(path, link+"/") {
		return ` aria-current="page"`
	}
	return ""
}

// stateMark shows a state as a word with its colour and shape.
func stateMark(word string) template.HTML {
	return template.HTML(`<span class="state ` + stateClass(word) + `">` + template.HTMLEscapeString(word) + `</span>`)
}

// stateClass is the class that the style sheet has for a state.
func stateClass(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(word))
}

// agoForm is the form of timeElement that says how long a time is past.
const agoForm = ` data-form="ago"`

// timeElement shows a time of a document in a zone. A script writes it in the reader's
// zone, or with the form how long it is past.
func timeElement(at, form string, zone *time.Location) template.HTML {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "–"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s"%s>%s</time>`, t.UTC().Format(time.RFC3339), form,
		t.In(zone).Format("2006-01-02 15:04:05")))
}

// byteText shows a size in bytes.
func byteText(n any) string { return roost.Bytes(toFloat(n)).String() }

// numberText shows a number without needless digits.
func numberText(n any) string {
	f := toFloat(n)
	if f == math.Trunc(f) {
		return groupDigits(int64(f))
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", f), "0"), ".")
}

// coresText writes a number of cores.
func coresText(n any) string {
	if toFloat(n) == 1 {
		return "1 core"
	}
	return numberText(n) + " cores"
}

// groupDigits writes a whole number with narrow spaces between groups of three digits.
func groupDigits(n int64) string {
	text := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, text = "−", text[1:]
	}
	var groups []string
	for len(text) > 4 || len(text) > 3 && len(groups) > 0 {
		groups, text = append(groups, text[len(text)-3:]), text[:len(text)-3]
	}
	groups = append(groups, text)
	slices.Reverse(groups)
	return sign + strings.Join(groups, "\u202f")
}

// spanText shows a length of time in seconds.
func spanText(seconds any) string {
	return document.SpanText(time.Duration(toFloat(seconds) * float64(time.Second)))
}

// percentText shows a part of a whole.
func percentText(part, whole any) string {
	if w := toFloat(whole); w > 0 {
		return fmt.Sprintf("%.0f %%", 100*toFloat(part)/w)
	}
	return "–"
}

// millisecondText returns a short span of time, given in seconds.
func millisecondText(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Microsecond).String()
}

func toFloat(n any) float64 {
	switch n := n.(type) {
	case int:
		return float64(n)
	case int32:
		return float64(n)
	case int64:
		return float64(n)
	case uint32:
		return float64(n)
	case uint64:
		return float64(n)
	case float64:
		return n
	case *float64:
		return *n
	}
	return 0
}

// withQuery returns the address of the present page with one parameter changed. An empty
// value removes it.
func withQuery(values url.Values, name, value string) string {
	changed := make(url.Values, len(values)+1)
	for k, v := range values {
		changed[k] = v
	}
	changed.Del("after")
	changed.Del(name)
	if value != "" {
		changed.Set(name, value)
	}
	return "?" + changed.Encode()
}

// capitalText begins a text with a capital letter.
func capitalText(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// compactJSON shows an object of the cell as one line of JSON.
func compactJSON(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
