package web

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// apiRoutes lists the routes of the API: "GET /v1/jobs".
func (w *testWeb) apiRoutes() (all []string) {
	for _, r := range w.server.table.Routes() {
		if r.Pattern != "" {
			all = append(all, r.Method+" "+r.Pattern)
		}
	}
	slices.Sort(all)
	return all
}

// TestManual compares the routes of roost-http(7) with the table, both ways.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../man/roost-http.7")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\.B(?:R|I)? "?((?:GET|POST|PUT|DELETE) [^"\n]+)"?$`).
		FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\-", "-"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if want := newTestWeb(t).apiRoutes(); !slices.Equal(got, want) {
		t.Errorf("the manual tells of\n%s\nand the table has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOpenAPI checks that the description has each route. Its references lead somewhere,
// and each operation has a name of its own.
func TestOpenAPI(t *testing.T) {
	w := newTestWeb(t)
	answer := w.do(w.request("GET", "/openapi.json", ""))
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("%v, %+v", err, d)
	}
	loaded, err := openapi3.NewLoader().LoadFromData(answer.Body.Bytes())
	if err == nil {
		err = loaded.Validate(t.Context())
	}
	if err != nil {
		t.Errorf("the description is not valid: %v", err)
	}
	var got []string
	ids := map[string]bool{}
	for path, of := range d.Paths {
		for method, o := range of {
			got = append(got, strings.ToUpper(method)+" "+path)
			if ids[o.OperationID] || o.OperationID == "" || len(o.Responses) < 2 {
				t.Errorf("%s %s: %+v", method, path, o)
			}
			ids[o.OperationID] = true
		}
	}
	slices.Sort(got)
	if want := w.apiRoutes(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	references := regexp.MustCompile(`"#/components/schemas/([^"]*)"`)
	for _, m := range references.FindAllStringSubmatch(answer.Body.String(), -1) {
		if d.Components.Schemas[m[1]] == nil {
			t.Errorf("%s leads nowhere", m[1])
		}
	}
	for name, s := range d.Components.Schemas {
		if fmt.Sprint(s) == "map[]" {
			t.Errorf("schema %s is empty", name)
		}
	}
}
