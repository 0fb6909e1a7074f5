package web

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestW16CSVFormula asks each list for CSV and JSON Lines. All texts of the pool are a
// formula with quotes and line feeds, and no cell begins with it.
func TestW16CSVFormula(t *testing.T) {
	w := newTestWeb(t)
	const formula = "=cmd|'/C \"calc\"'!A0\n=2"
	w.schedd.text = formula
	w.schedd.cell = map[string]string{"quota": `[{"name":"=1","object":{"group":"@x"},"set_by":"ann"}]`}
	cookie := w.logIn("ann")
	found := 0
	for _, r := range w.server.table.Routes() {
		if r.Rows == "" {
			continue
		}
		for _, kind := range []string{"text/csv", "application/jsonl", "application/x-ndjson"} {
			w.forgetLimits()
			q := as(w.request("GET", examplePath(r.Pattern), ""), cookie)
			q.Header.Set("Accept", kind)
			answer := w.do(q)
			if answer.Code != http.StatusOK {
				if answer.Code != http.StatusServiceUnavailable && answer.Code != http.StatusNotFound {
					t.Errorf("%s as %s: %d %s", r.Pattern, kind, answer.Code, answer.Body)
				}
				continue
			}
			if got := answer.Header().Get("Content-Type"); !strings.HasPrefix(got, kind) {
				t.Errorf("%s as %s: it is %s", r.Pattern, kind, got)
			}
			if kind != "text/csv" {
				for line := range strings.Lines(answer.Body.String()) {
					if !json.Valid([]byte(line)) || line[0] != '{' {
						t.Errorf("%s as %s: %q", r.Pattern, kind, line)
					}
				}
				continue
			}
			records, err := csv.NewReader(answer.Body).ReadAll()
			if err != nil || len(records) == 0 {
				t.Errorf("%s: %v, %q", r.Pattern, err, records)
			}
			for _, cell := range slices.Concat(records...) {
				if cell != "" && strings.ContainsRune("=+@\t\r", rune(cell[0])) {
					t.Errorf("%s: the cell %q is a formula", r.Pattern, cell)
				}
				if strings.HasPrefix(cell, "'=") || strings.HasPrefix(cell, "'@") {
					found++
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d cells were made harmless: the lists were not those of the pool", found)
	}
}
