package web

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/web/view"
)

// TestExports reads records in each format and of each table. No text is a formula.
func TestExports(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "=HYPERLINK(1)"
	cookie := w.logIn("ann")
	ask := func(path string) (int, http.Header, string) {
		w.forgetLimits()
		answer := w.do(as(w.request("GET", "/v1/accounting/exports/"+path, ""), cookie))
		return answer.Code, answer.Header(), answer.Body.String()
	}
	for table, report := range map[string]string{"": query.Attempts, "attempts": query.Attempts,
		"segments": query.Attempts, "jobs": query.Jobs, "machines": query.Machines} {
		code, head, text := ask("csv?month=2026-03&table=" + table)
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		want := 2
		if table == "segments" {
			want = 1 // the head: the attempt was not suspended
		}
		if code != http.StatusOK || err != nil || len(rows) != want || strings.Contains(text, ",=") ||
			!strings.HasPrefix(head.Get("Content-Type"), "text/csv") ||
			head.Get("Content-Disposition") != `attachment; filename="roost.csv"` {
			t.Errorf("csv of %q: %d %v %v: %s", table, code, head, err, text)
		}
		q := w.schedd.queries[len(w.schedd.queries)-1]
		if q.Report != report || q.Limit != query.MaxLimit || accounting.MonthOf(q.From).String() != "2026-03" ||
			(q.Owner == query.Self) != (report != query.Machines) {
			t.Errorf("the accountant was asked %+v", q)
		}
		code, _, text = ask("jsonl?table=" + table)
		for line := range strings.Lines(text) {
			if !json.Valid([]byte(line)) {
				t.Errorf("jsonl of %q: %s", table, line)
			}
		}
		if lines := strings.Count(text, "\n"); code != http.StatusOK || lines != want-1 {
			t.Errorf("jsonl of %q: %d %s", table, code, text)
		}
	}
	code, _, text := ask("xdmod?cluster=c1&all=1")
	if q := w.schedd.queries[len(w.schedd.queries)-1]; code != http.StatusOK || q.Owner != "" ||
		!strings.Contains(text, "|c1|") {
		t.Errorf("xdmod: %d, asked %+v: %s", code, q, text)
	}
	if code, head, text := ask("pbs?month=2026-03"); code != http.StatusOK || !strings.Contains(text, ";E;") ||
		!strings.Contains(text, ";Q;") || head.Get("Content-Disposition") != `attachment; filename="roost-pbs.txt"` {
		t.Errorf("pbs: %d %v: %s", code, head, text)
	}
	if code, _, text := ask("swf?cluster=c1"); code != http.StatusOK || !strings.HasPrefix(text, "; ") ||
		w.schedd.queries[len(w.schedd.queries)-1].Time != query.BySubmit {
		t.Errorf("swf: %d: %s", code, text)
	}
	for path, want := range map[string]int{"borg": 400, "borg?table=jobs": 400, "borg?table=machine_events": 400,
		"pbs?table=jobs": 400, "csv?pseudonyms=yes": 400,
		"csv2": 404, "csv?table=x": 400, "xdmod?table=jobs": 400,
		"csv?month=March": 400, "csv?limit=1e9": 400, "csv?days=-1": 400} {
		if code, _, text := ask(path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// TestTraceExport reads each table of a Borg trace. Names are hashed with the key that is
// sent, so that the tables with one key have the same names.
func TestTraceExport(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "secret-owner"
	cookie := w.logIn("ann")
	read := func(table, key string) (names, text string) {
		w.forgetLimits()
		q := as(w.request("GET", "/v1/accounting/exports/borg?month=2026-03&table="+table, ""), cookie)
		q.Header.Set(view.PseudonymKeyHeader, key)
		answer := w.do(q)
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "application/gzip" ||
			answer.Header().Get("Content-Disposition") != `attachment; filename="`+table+`.csv.gz"` {
			t.Fatalf("%s: %d %v %s", table, answer.Code, answer.Header(), answer.Body)
		}
		unpacked, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		all, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		names, _, _ = strings.Cut(string(all), "\n")
		return names, string(all)
	}
	for table, column := range map[string]string{"collection_events": "collection_logical_name",
		"instance_events": "machine_id", "instance_usage": "average_usage", "machine_events": "machine_id",
		"machine_attributes": "name"} {
		head, text := read(table, "sixteen bytes or more")
		_, again := read(table, "sixteen bytes or more")
		_, other := read(table, "another key than before")
		hasRows := strings.Count(text, "\n") > 1
		if !strings.Contains(head, column) || text != again || hasRows && text == other ||
			strings.Contains(text, "secret-owner") {
			t.Errorf("%s: %s\nand with another key %s", table, text, other)
		}
		if !hasRows && strings.HasSuffix(table, "_events") && table != "machine_events" { // drains are none
			t.Errorf("%s has no rows", table)
		}
	}
	w.forgetLimits()
	short := as(w.request("GET", "/v1/accounting/exports/borg?table=machine_events", ""), cookie)
	short.Header.Set(view.PseudonymKeyHeader, "short")
	if answer := w.do(short); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "16") {
		t.Errorf("a short key: %d %s", answer.Code, answer.Body)
	}
}

// TestNodeHistory shows what became of a machine, and its ad. That of a desktop does not
// tell of the person at it.
func TestNodeHistory(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	var events view.NodeEvents
	w.get("/v1/nodes/N1/events?days=3", &events, cookie)
	if q := w.schedd.queries[len(w.schedd.queries)-1]; q.Report != query.Machines || q.Node != "n1" || q.Owner != "" {
		t.Errorf("the accountant was asked %+v", q)
	}
	if len(events.Events) != 1 || events.Events[0].What != "drained" ||
		events.Events[0].Time != "2026-03-01T00:00:00.000Z" {
		t.Errorf("got %+v", events)
	}
	const ad = `Name = "n1"; State = "Owner"; TotalCpus = 4; KeyboardIdle = 77; LoadAvg = 3.25; QuietTime = 77`
	for text, secret := range map[string]bool{"[" + ad + "]": false, "[" + ad + "; OwnerBusy = true]": true} {
		w.schedd.mu.Lock()
		w.schedd.ads = []string{text}
		w.schedd.mu.Unlock()
		var shown view.NodeAd
		w.get("/v1/nodes/n1/ads", &shown, cookie)
		all := string(shown.Ad) + shown.Text
		if !strings.Contains(all, "TotalCpus") || secret == strings.Contains(all, "77") ||
			secret == strings.Contains(all, "3.25") || secret == strings.Contains(all, `"Owner"`) {
			t.Errorf("%s is shown as %s", text, all)
		}
	}
	for _, path := range []string{"/nodes/n2/ads", "/nodes/n2/events", "/v1/nodes/n2/ads"} {
		w.forgetLimits()
		if answer := w.do(as(w.request("GET", path, ""), cookie)); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

// TestExportPseudonyms exports records with pseudonyms. With the same key they are the
// same, and no name is among them.
func TestExportPseudonyms(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "zebra"
	cookie := w.logIn("ann")
	ask := func(path, key string) (int, string) {
		w.forgetLimits()
		q := as(w.request("GET", "/v1/accounting/exports/"+path, ""), cookie)
		if key != "" {
			q.Header.Set(view.PseudonymKeyHeader, key)
		}
		answer := w.do(q)
		return answer.Code, answer.Body.String()
	}
	for _, path := range []string{"csv?pseudonyms=1", "csv?table=jobs&pseudonyms=1",
		"jsonl?table=machines&pseudonyms=1", "pbs?pseudonyms=1", "xdmod?pseudonyms=1"} {
		code, text := ask(path, "0123456789abcdef")
		_, again := ask(path, "0123456789abcdef")
		_, other := ask(path, "")
		hidden := strings.ReplaceAll(text, `"class":"zebra"`, "") // of machines, which stays
		if code != http.StatusOK || strings.Contains(hidden, "zebra") || text != again || text == other {
			t.Errorf("%s: %d\n%s\nagain\n%s\nwithout a key\n%s", path, code, text, again, other)
		}
		_, named := ask(strings.ReplaceAll(path, "pseudonyms=1", ""), "")
		if !strings.Contains(named, "zebra") {
			t.Errorf("%s has no name that a pseudonym would replace: %s", path, named)
		}
	}
	if code, text := ask("csv?pseudonyms=1", "short"); code != http.StatusBadRequest {
		t.Errorf("a short key: %d %s", code, text)
	}
	if code, text := ask("csv", "0123456789abcdef"); code != http.StatusBadRequest {
		t.Errorf("a key without pseudonyms: %d %s", code, text)
	}
}
