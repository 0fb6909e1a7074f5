package page

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
)

// jobList is a list of waiting jobs as the page of them shows it.
func jobList(rows int) *view.JobList {
	list := &view.JobList{Layout: view.ListLayout{Name: view.LayoutColumn{Name: "id", Head: "Job", Shown: true}}}
	for _, name := range []string{"name", "owner", "state", "tasks", "cpus", "memory", "submitted", "where"} {
		list.Layout.Columns = append(list.Layout.Columns, view.LayoutColumn{Name: name, Head: name, Shown: true})
	}
	for i := range rows {
		list.Jobs = append(list.Jobs, document.Job{ID: fmt.Sprintf("%d.submit", i), Name: fmt.Sprintf("simulate-%d", i),
			Owner: "ann", State: "idle", Tasks: 1, Band: "batch", Submitted: "2026-03-01T12:00:00Z",
			Request: document.Resources{CPUs: 1, Memory: 1 << 28}, Reason: "no machine has 4096 GPUs"})
	}
	return list
}

// rowTemplate writes the rows with the escapes of html/template, which knows the context
// of each value.
const rowTemplate = `{{$shown := .Shown}}{{range .Jobs}}{{$j := .}}<tr data-job="{{.ID}}" data-state="{{.State}}"><th scope="row" class="nowrap"><a href="/jobs/{{.ID}}">{{.ID}}</a></th>
{{- range $shown}}{{if eq .Name "name"}}<td class="text">{{$j.Name}}</td>
{{- else if eq .Name "owner"}}<td>{{$j.Owner}}</td>{{else if eq .Name "state"}}<td>{{state $j.State}}</td>
{{- else if eq .Name "tasks"}}<td class="bar-cell">{{if gt $j.Tasks 1}}{{strip (counts $j.Counts)}}<span class="muted">{{number $j.Tasks}}</span>{{else}}1{{end}}</td>
{{- else if eq .Name "cpus"}}<td class="number">{{number $j.Request.CPUs}}</td>{{else if eq .Name "memory"}}<td class="number">{{bytes $j.Request.Memory}}</td>
{{- else if eq .Name "gpus"}}<td class="number">{{number $j.Request.GPUs}}</td>{{else if eq .Name "band"}}<td>{{$j.Band}}</td>
{{- else if eq .Name "queue"}}<td>{{$j.Queue}}</td>{{else if eq .Name "priority"}}<td class="number">{{$j.Priority}}</td>
{{- else if eq .Name "submitted"}}<td class="nowrap">{{ago $j.Submitted}}</td>{{else if eq .Name "started"}}<td class="nowrap">{{ago $j.Started}}</td>
{{- else if eq .Name "ended"}}<td class="nowrap">{{ago $j.Ended}}</td>
{{- else}}<td class="text" data-where>{{if and $j.Node (eq $j.State "running")}}<a href="/nodes/{{$j.Node}}">{{$j.Node}}</a>{{with $j.Service}}{{if eq .State "lost"}} {{state .State}}{{end}}{{end}}{{else}}{{$j.Reason}}{{end}}</td>{{end}}{{end}}</tr>
{{end}}`

// TestJobRows compares rows with those of a template, of jobs whose every text means
// harm.
func TestJobRows(t *testing.T) {
	of := template.Must(template.New("").Funcs(functions(time.UTC)).Parse(rowTemplate))
	var all []view.LayoutColumn
	for _, name := range []string{"name", "owner", "state", "tasks", "cpus", "memory", "gpus", "band", "queue",
		"priority", "submitted", "started", "ended", "where"} {
		all = append(all, view.LayoutColumn{Name: name})
	}
	jobs := jobList(3).Jobs
	jobs[0].ID = "12[].submit"
	jobs[1].State, jobs[1].Node, jobs[1].Service = "running", "n1.lab", &document.Service{State: "lost"}
	jobs[2].Tasks, jobs[2].Counts, jobs[2].Priority = 20000, map[string]uint32{"idle": 15000, "running": 5000}, -7
	for _, bad := range []string{`"><script>alert(1)</script>`, `' onmouseover='x`, "a&lt;b", "\x00\xff<", "javascript:x",
		"\u202e<b>", `\" x`} {
		j := document.Job{ID: "1.x", Name: bad, Owner: bad, State: bad, Band: bad, Queue: bad, Reason: bad,
			Submitted: bad, Started: bad, Ended: bad, Tasks: 1}
		jobs = append(jobs, j)
	}
	var want bytes.Buffer
	if err := of.Execute(&want, map[string]any{"Jobs": jobs, "Shown": all}); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(string(jobRows(jobs, all, time.UTC)), "\n")
	for i, line := range strings.Split(want.String(), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("row %d: got\n%s\nwant\n%s", i, got[i], line)
		}
	}
}

// TestRowLinks has names that mean something in an address, or harm.
func TestRowLinks(t *testing.T) {
	for name, want := range map[string]string{
		"12[3].lab":  `<a href="/jobs/12[3].lab">12[3].lab</a>`,
		"../x?y#z":   `<a href="/jobs/..%2Fx%3Fy%23z">../x?y#z</a>`,
		`"><script>`: `<a href="/jobs/%22%3E%3Cscript%3E">&#34;&gt;&lt;script&gt;</a>`,
		"a&b":        `<a href="/jobs/a&amp;b">a&amp;b</a>`,
		"a:b":        `<a href="/jobs/a:b">a:b</a>`,
	} {
		if got := string(appendLink(nil, "/jobs/", name)); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// BenchmarkJobs measures the page of a list of 200 jobs.
func BenchmarkJobs(b *testing.B) {
	set, err := Load()
	if err != nil {
		b.Fatal(err)
	}
	frame := Frame{User: "ann", Zone: route.UTCZone, Path: "/jobs", Here: "/jobs", Data: jobList(200)}
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := set.Render(&out, "jobs", frame); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(out.Len()), "bytes")
}
