package page

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/view"
)

// jobRows writes the rows of a list of jobs. A template needs ten times as long for them,
// and they are most of the page that is opened most often.
func jobRows(jobs []document.Job, shown []view.LayoutColumn, zone *time.Location) template.HTML {
	b := make([]byte, 0, 512*len(jobs))
	for i := range jobs {
		j := &jobs[i]
		b = append(b, `<tr data-job="`...)
		b = appendEscaped(b, j.ID)
		b = append(b, `" data-state="`...)
		b = appendEscaped(b, j.State)
		b = append(b, `"><th scope="row" class="nowrap">`...)
		b = appendLink(b, "/jobs/", j.ID)
		b = append(b, "</th>"...)
		for _, c := range shown {
			b = appendJobCell(b, c.Name, j, zone)
		}
		b = append(b, "</tr>\n"...)
	}
	return template.HTML(b)
}

// appendJobCell appends the cell of a column.
func appendJobCell(b []byte, column string, j *document.Job, zone *time.Location) []byte {
	text := func(class, value string) []byte {
		return append(appendEscaped(append(b, class...), value), "</td>"...)
	}
	at := func(t string) []byte {
		return append(append(append(b, `<td class="nowrap">`...), timeElement(t, agoForm, zone)...), "</td>"...)
	}
	const number = `<td class="number">`
	switch column {
	case "name":
		return text(`<td class="text">`, j.Name)
	case "owner":
		return text("<td>", j.Owner)
	case "band":
		return text("<td>", j.Band)
	case "queue":
		return text("<td>", j.Queue)
	case "state":
		return append(append(append(b, "<td>"...), stateMark(j.State)...), "</td>"...)
	case "tasks":
		b = append(b, `<td class="bar-cell">`...)
		if j.Tasks <= 1 {
			return append(b, "1</td>"...)
		}
		b = append(append(b, stripBar(countParts(j.Counts))...), `<span class="muted">`...)
		return append(append(b, numberText(j.Tasks)...), "</span></td>"...)
	case "cpus":
		return text(number, numberText(j.Request.CPUs))
	case "memory":
		return text(number, byteText(j.Request.Memory))
	case "gpus":
		return text(number, numberText(j.Request.GPUs))
	case "priority":
		return text(number, strconv.Itoa(int(j.Priority)))
	case "submitted":
		return at(j.Submitted)
	case "started":
		return at(j.Started)
	case "ended":
		return at(j.Ended)
	}
	return appendWhereCell(b, j)
}

// appendWhereCell appends where a job runs, or else why it does not.
func appendWhereCell(b []byte, j *document.Job) []byte {
	b = append(b, `<td class="text" data-where>`...)
	switch {
	case j.Node == "" || j.State != "running":
		b = appendEscaped(b, j.Reason)
	default:
		b = appendLink(b, "/nodes/", j.Node)
		if j.Service != nil && j.Service.State == "lost" {
			b = append(append(b, ' '), stateMark(j.Service.State)...)
		}
	}
	return append(b, "</td>"...)
}

// appendLink appends a link to the page of something with a name.
func appendLink(b []byte, path, name string) []byte {
	to := name
	if strings.ContainsFunc(name, func(r rune) bool { return !isPlainInPath(r) }) {
		to = url.PathEscape(name)
	}
	b = appendEscaped(append(append(b, `<a href="`...), path...), to)
	return append(appendEscaped(append(b, `">`...), name), "</a>"...)
}

// isPlainInPath reports whether a character stands for itself in a path and in HTML.
func isPlainInPath(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~[]", r)
}

// appendEscaped appends a text for HTML.
func appendEscaped(b []byte, text string) []byte {
	return append(b, template.HTMLEscapeString(text)...)
}
