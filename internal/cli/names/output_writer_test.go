package names

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func endpoint(index uint32, state string, port uint32) *scheddapi.ServiceEndpoint {
	return &scheddapi.ServiceEndpoint{
		Key:     &scheddapi.EndpointKey{Owner: "ann", Name: "web", Job: "1.pool", Index: index},
		Attempt: 1, Revision: 2, State: state, Weight: 1, Address: "10.0.0.1", Machine: "n1",
		Ports: []*scheddapi.EndpointPort{{Name: "http", Number: port}}}
}

func list(all ...*scheddapi.ServiceEndpoint) []*scheddapi.ServiceEndpoint { return all }

// TestTable applies updates to a table: a full list, changes, and a full list again.
func TestTable(t *testing.T) {
	table := endpointTable{}
	steps := []struct {
		update *scheddapi.NamesUpdate
		want   string
	}{
		{&scheddapi.NamesUpdate{Full: true, More: true, Endpoints: list(endpoint(1, "ready", 1))},
			"1=ready"},
		{&scheddapi.NamesUpdate{Endpoints: list(endpoint(0, "unready", 1))}, "0=unready 1=ready"},
		{&scheddapi.NamesUpdate{Endpoints: list(endpoint(0, "ready", 1)),
			Removed: []*scheddapi.EndpointKey{endpoint(1, "", 1).GetKey()}}, "0=ready"},
		{&scheddapi.NamesUpdate{Full: true, Endpoints: list(endpoint(5, "ready", 1))}, "5=ready"},
	}
	for i, step := range steps {
		table.apply(step.update)
		var got []string
		for _, e := range documentsOf(table) {
			got = append(got, fmt.Sprintf("%d=%s", e.Index, e.State))
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Errorf("step %d: %q, want %q", i, text, step.want)
		}
	}
}

// TestParseJob parses names of services.
func TestParseJob(t *testing.T) {
	for text, want := range map[string][3]string{"hub.ann": {"ann", "hub", ""}, "12.pool": {"", "", "12.pool"}} {
		if q, err := parseJob(text); err != nil || q.GetOwner() != want[0] || q.GetName() != want[1] ||
			q.GetJob() != want[2] {
			t.Errorf("%s: %v, %v", text, q, err)
		}
	}
	if q, err := parseJob("hub"); err != nil || q.GetOwner() == "" || q.GetName() != "hub" {
		t.Errorf("hub: %v, %v", q, err)
	}
	if q, err := parseJob("12"); err == nil {
		t.Errorf("12 is no whole id, and is taken for %v", q)
	}
}

// TestWriter writes a file from a template and runs the command only when the file has
// changed.
func TestWriter(t *testing.T) {
	dir := t.TempDir()
	file, runs := filepath.Join(dir, "web.conf"), filepath.Join(dir, "runs")
	parsed := template.Must(template.New("t").Parse("{{range .Ready}}server {{.Address}}:{{.Ports.http}};\n{{end}}"))
	w := &outputWriter{file: file, command: "echo run >> " + runs, isFirst: true,
		render: func(t endpointTable) ([]byte, error) {
			var out bytes.Buffer
			err := parsed.Execute(&out, templateData(t))
			return out.Bytes(), err
		}}
	c := &frame.Invocation{Context: t.Context(), App: &frame.App{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}}
	table := endpointTable{}
	for i, step := range []struct {
		endpoint *scheddapi.ServiceEndpoint
		file     string
		runs     int
	}{
		{endpoint(0, "starting", 20000), "", 1},
		{endpoint(0, "ready", 20000), "server 10.0.0.1:20000;\n", 2},
		{endpoint(1, "starting", 20001), "server 10.0.0.1:20000;\n", 2},
		{endpoint(1, "ready", 20001), "server 10.0.0.1:20000;\nserver 10.0.0.1:20001;\n", 3},
	} {
		table.apply(&scheddapi.NamesUpdate{Endpoints: []*scheddapi.ServiceEndpoint{step.endpoint}})
		text, err := w.render(table)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.write(c, text); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(file)
		ran, _ := os.ReadFile(runs)
		if string(got) != step.file || strings.Count(string(ran), "run") != step.runs {
			t.Errorf("step %d: file %q, %d runs; want %q, %d", i, got, strings.Count(string(ran), "run"), step.file,
				step.runs)
		}
	}
	targets, err := targetsText(table, "http")
	if err != nil || strings.Count(string(targets), `"10.0.0.1:2000`) != 2 {
		t.Errorf("targets: %s, %v", targets, err)
	}
	if none, err := targetsText(table, "admin"); err != nil || string(none) != "[]\n" {
		t.Errorf("targets of a port that nobody has: %q, %v", none, err)
	}
}
