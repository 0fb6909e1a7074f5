package web

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/web/view"
)

// TestAccountsChanges makes each change of the accounts as its command does, and refuses
// what a command refuses.
func TestAccountsChanges(t *testing.T) {
	w := newTestWeb(t)
	token := w.apiToken("ann", session.Admin)
	ask := func(method, path, body, key string) (int, string) {
		w.forgetLimits()
		r := as(w.request(method, path, body), token)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		answer := w.do(r)
		return answer.Code, strings.TrimSpace(answer.Body.String())
	}
	month := accounting.MonthOf(accounting.MillisOf(time.Now()))
	for _, c := range []struct{ method, path, body, what, want string }{
		{"PUT", "rates", `{"rule":"sum","core_hour":0.02}`, "rate", `"core_hour":0.02`},
		{"POST", "recharge", `{"from":"2026-01-01T00:00:00Z"}`, "rerate", `"recharge":"2026-01-01T00:00:00.000Z"`},
		{"POST", "adjustments", `{"payer":{"project":"x"},"amount":-12.5,"reason":"r"}`, "adjustment", month.String()},
		{"PUT", "budgets", `{"payer":{"user":"ann"},"from":"2026-01","to":"2026-12","amount":5,"hard":true}`, "budget",
			`"hard":true`},
		{"DELETE", "budgets?user=ann&first=2026-01&last=2026-12", "", "budget", `"to":"2026-12"`},
		{"PUT", "months/2026-03/closed", "", "close", `"closed":"2026-03"`},
	} {
		code, text := ask(c.method, "/v1/accounting/"+c.path, c.body, "k1")
		if code != http.StatusOK || !strings.Contains(text, c.want) || !strings.Contains(text, `"v":1`) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, text)
			continue
		}
		if got := w.schedd.changes[len(w.schedd.changes)-1]; got.What() != c.what ||
			c.what == "adjustment" && got.Request != "k1" ||
			c.method == "DELETE" && got.Budget.Amount != query.NoBudget {
			t.Errorf("%s %s: the accountant got %+v", c.method, c.path, got)
		}
	}
	made := len(w.schedd.changes)
	for _, c := range [][3]string{
		{"PUT", "rates", `{"rule":"flat","core_hour":1}`}, {"PUT", "rates", `{"rule":"sum","price":1}`},
		{"POST", "recharge", `{}`}, {"POST", "adjustments", `{"payer":{},"amount":1,"reason":"r"}`},
		{"POST", "adjustments", `{"payer":{"project":"x"},"amount":1}`}, {"DELETE", "budgets", ""},
		{"DELETE", "budgets?user=ann&group=x", ""}, {"DELETE", "budgets?user=ann&first=March", ""},
		{"PUT", "months/March/closed", ""},
	} {
		if code, text := ask(c[0], "/v1/accounting/"+c[1], c[2], ""); code != http.StatusBadRequest {
			t.Errorf("%v: %d %s", c, code, text)
		}
	}
	if code, _ := ask("POST", "/v1/accounting/adjustments", `{}`, "a b"); code != http.StatusBadRequest ||
		len(w.schedd.changes) != made {
		t.Errorf("a bad key: %d; %d changes", code, len(w.schedd.changes)-made)
	}
}

// TestStatementRows compares the CSV of a statement with its document: the amounts sum to
// the total.
func TestStatementRows(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "ocean"
	cookie := w.logIn("ann")
	var l view.StatementList
	w.get("/v1/accounting/statements?month=2026-03&project=ocean", &l, cookie)
	if len(l.Statements) != 1 || l.Statements[0].Total.String() != "-12" {
		t.Errorf("got %+v", l)
	}
	q := w.schedd.queries[len(w.schedd.queries)-1]
	if q.Payer == nil || q.Payer.Project != "ocean" || accounting.MonthOf(q.From).String() != "2026-03" ||
		q.Owner != "" {
		t.Errorf("the accountant was asked %+v", q)
	}
	r := as(w.request("GET", "/v1/accounting/statements", ""), cookie)
	r.Header.Set("Accept", "text/csv")
	records, err := csv.NewReader(w.do(r).Body).ReadAll()
	want := [][]string{{"payer", "what", "user", "queue", "band", "core_hours", "amount"},
		{"project ocean", "use", "ocean", "ocean", "ocean", "1.50", "0.5"},
		{"project ocean", "ocean", "ocean", "", "", "", "-12.5"},
		{"project ocean", "total, not closed", "", "", "", "", "-12"}}
	if err != nil || !slices.EqualFunc(records, want, slices.Equal[[]string]) {
		t.Errorf("%v, got %q, want %q", err, records, want)
	}
	for path, owner := range map[string]string{"/statement": query.Self, "/statement?all=1": "",
		"/statement?kind=group&name=physics": ""} {
		w.forgetLimits()
		answer := w.do(as(w.request("GET", path, ""), cookie))
		q := w.schedd.queries[len(w.schedd.queries)-1]
		if text := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(text, "-12.5") ||
			!strings.Contains(text, ">1.50<") ||
			q.Owner != owner || strings.Contains(path, "group") != (q.Payer != nil && q.Payer.Group == "physics") {
			t.Errorf("%s: %d, asked %+v: %s", path, answer.Code, q, text)
		}
	}
}

// TestAccountsReports asks for a report as the command does.
func TestAccountsReports(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	var r view.AccountsReport
	w.get("/v1/accounting/reports/ends?month=2026-03&detail=1&queue=long", &r, cookie)
	text, err := json.Marshal(r.Lines)
	if err != nil || !strings.Contains(string(text), `"held_cpu":0`) || r.Report != query.Ends {
		t.Errorf("%v, got %s", err, text)
	}
	if q := w.schedd.queries[0]; q.Owner != query.Self || q.Queue != "long" || len(q.By) != 1 ||
		accounting.MonthOf(q.From).String() != "2026-03" {
		t.Errorf("the accountant was asked %+v", q)
	}
	answer := w.do(as(w.request("GET", "/v1/accounting/reports/attempts", ""), cookie))
	if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "timeline") {
		t.Errorf("no such report: %d %s", answer.Code, answer.Body)
	}
	for _, bad := range []string{"limit=0", "month=March", "days=x", "band=best"} {
		answer := w.do(as(w.request("GET", "/v1/accounting/reports/ends?"+bad, ""), cookie))
		if answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, answer.Code, answer.Body)
		}
	}
}

// TestUsageCSV compares the CSV of a line of usage with what the command prints. The test
// of that name in internal/cli/accounts has the same line and text. The reports have the
// headings of the command, too.
func TestUsageCSV(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "=ocean"
	cookie := w.logIn("ann")
	get := func(path string) string {
		w.forgetLimits()
		r := as(w.request("GET", path, ""), cookie)
		r.Header.Set("Accept", "text/csv")
		answer := w.do(r)
		if answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
		return answer.Body.String()
	}
	want := "owner,core_hours,cpu_hours,used_percent,gpu_hours,lost_core_hours,ended,failed,mean_wait\n" +
		"'=ocean,2.00,0.00,0.0,0.00,0.00,1,0,\n"
	if got := get("/v1/usage"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for report, head := range map[string]string{
		query.Ends:    "owner,cause,count,core_hours,lost_core_hours,saved_core_hours\n'=ocean,",
		query.Sources: "host,next,complete,lag_seconds,skew_seconds,gaps,refused,error\n",
		query.Waits:   "band,queue,bucket,count,mean_wait\n",
	} {
		if got := get("/v1/accounting/reports/" + report); !strings.HasPrefix(got, head) {
			t.Errorf("%s: got %q, want %q", report, got, head)
		}
	}
}
