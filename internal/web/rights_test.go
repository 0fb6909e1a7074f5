package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
)

// examplePath fills in the wildcards of a pattern.
func examplePath(pattern string) string {
	return strings.NewReplacer("/search/{stream}", "/search/out?q=x", "{id}", "1.n1", "{node}", "n1", "{stream}", "out",
		"{name}", "x", "{file}", "roost.css",
		"{provider}", "university", "{$}", "", "{month}", "2026-03",
		"{checkpoint}", "20261128T140000Z",
		"{report}", "ends", "{format}", "csv").Replace(pattern)
}

// exampleBody is a body that a route accepts.
func exampleBody(r *route.Route) string {
	return map[string]string{
		"/v1/acts":                   `{"verb":"hold","select":["1.n1"],"expect":1}`,
		"/v1/jobs":                   `{"text":"job \"a\" { command = [\"true\"] }"}`,
		"/v1/whatif":                 `{"drain":["n1"]}`,
		"/v1/accounting/rates":       `{"rule":"sum","core_hour":0.02}`,
		"/v1/accounting/recharge":    `{"from":"2026-01-01T00:00:00Z"}`,
		"/v1/accounting/adjustments": `{"payer":{"project":"x"},"month":"2026-03","amount":-12.5,"reason":"r"}`,
		"/v1/accounting/budgets":     `{"payer":{"user":"ann"},"from":"2026-01","to":"2026-12","amount":5}`,
		"/v1/plan":                   `{"text":"job \"a\" { command = [\"true\"] }"}`,
	}[r.Pattern]
}

// TestW11Rights tries each route with each kind of caller. What is expected is made of
// the row's rights alone. A refusal by rights is 401 or 403; behind them, the schedd
// decides.
func TestW11Rights(t *testing.T) {
	w := newTestWeb(t)
	redeeming := []string{"/v1/session", "/login", "/v1/tokens", "/login/password", "/login/university/callback"}
	callers := w.callers()
	for _, r := range w.server.table.Routes() {
		for _, pattern := range []string{r.Pattern, r.Page} {
			path := examplePath(pattern)
			if pattern == "" || r.Method == "POST" && slices.Contains(redeeming, path) {
				continue // those check a login token: see the tests of logins
			}
			for name, credential := range callers {
				w.forgetLimits()
				answer := w.do(as(w.request(r.Method, path, exampleBody(&r)), credential))
				want, got := expectedRefusal(&r, path, name), 0
				if answer.Code == http.StatusUnauthorized || answer.Code == http.StatusForbidden {
					got = answer.Code
				}
				if got != want {
					t.Errorf("%s %s by %s: got %d %s, want refusal %d", r.Method, path, name, answer.Code, answer.Body,
						want)
				}
				if h := answer.Header(); h.Get("Content-Security-Policy") == "" ||
					h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
					t.Errorf("%s %s: it lacks headers: %v", r.Method, path, h)
				}
			}
			if r.Changes && r.Rights == route.OwnSession { // it may have ended sessions
				callers = w.callers()
			}
		}
	}
}

// expectedRefusal is the status with which a caller has to be refused; 0: not by rights.
func expectedRefusal(r *route.Route, path, caller string) int {
	switch scope, isToken := strings.CutPrefix(caller, "token "); {
	case r.Rights == route.Anonymous:
		return 0
	case strings.HasPrefix(caller, "nobody"):
		return http.StatusUnauthorized
	case isToken && (r.Rights == route.OwnSession || string(r.Rights.Scope()) != scope):
		return http.StatusForbidden
	case caller == "bob" && r.Method == "DELETE" && strings.HasSuffix(path, "/x"):
		return http.StatusForbidden // by the negotiators: he is no administrator
	case caller == "bob" && (path == "/v1/acts" || strings.Contains(path, "/log/") ||
		strings.Contains(path, "/text/") || strings.Contains(path, "/search/")):
		return http.StatusForbidden // by the schedd: it is ann's job
	}
	return 0
}

// callers are all kinds of callers with their credentials.
func (w *testWeb) callers() map[string]any {
	w.Helper()
	w.endLogins()
	all := map[string]any{"nobody": nil, "nobody with a cookie": &http.Cookie{Name: "roost", Value: "x"},
		"nobody with a token": "rtk_x", "ann": w.logIn("ann"), "bob": w.logIn("bob")}
	for _, scope := range session.Scopes() {
		all["token "+string(scope)] = w.apiToken("ann", scope)
	}
	return all
}

// endLogins ends all logins, of which a user may have a few only.
func (w *testWeb) endLogins() {
	w.Helper()
	w.forgetLimits()
	s, _, err := w.server.store.Login(w.Context(), session.Proof{Token: w.loginToken("ann")}, "test")
	if err != nil {
		w.Fatal(err)
	}
	for _, t := range w.server.store.Tokens("ann") {
		if _, err := w.server.store.RemoveToken(w.Context(), s, t.ID); err != nil {
			w.Fatal(err)
		}
	}
	for _, user := range []string{"ann", "bob"} {
		for _, s := range w.server.store.Sessions(user) {
			w.server.store.Close(s)
		}
	}
}

// TestW4NoReadChanges walks through the table: no route of a safe method changes state.
// Each that changes state refuses what a page of another site can send.
func TestW4NoReadChanges(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for _, r := range w.server.table.Routes() {
		if r.Changes == route.IsSafe(r.Method) {
			t.Errorf("%s %s %s: it changes state: %v", r.Method, r.Pattern, r.Page, r.Changes)
		}
		if route.IsSafe(r.Method) {
			continue
		}
		for _, pattern := range []string{r.Pattern, r.Page} {
			if pattern == "" {
				continue
			}
			for _, method := range []string{r.Method, "PUT", "PATCH", "DELETE"} {
				for name, header := range map[string][2]string{"cross-site": {"Sec-Fetch-Site", "cross-site"},
					"same-site": {"Sec-Fetch-Site", "same-site"}, "origin": {"Origin", "https://evil.example"},
					"null": {"Origin", "null"}, "nothing": {"X-Nothing", "1"}} {
					for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded",
						"application/json", "multipart/form-data"} {
						q := as(w.request(method, examplePath(pattern), exampleBody(&r)), cookie)
						q.Header.Del("Sec-Fetch-Site")
						q.Header.Set(header[0], header[1])
						q.Header.Set("Content-Type", kind)
						if answer := w.do(q); answer.Code != http.StatusForbidden {
							t.Errorf("%s %s, %s, %s: got %d", method, pattern, name, kind, answer.Code)
						}
					}
				}
			}
		}
	}
	if len(w.schedd.acts) > 0 {
		t.Errorf("it has acted: %v", w.schedd.acts)
	}
	if answer := w.do(as(w.request("DELETE", "/v1/session", ""), cookie)); answer.Code != http.StatusNoContent {
		t.Errorf("the session is gone before its end: %d", answer.Code)
	}
}

// TestRoutesComplete refuses rows without rights or limits, and pages without templates.
func TestRoutesComplete(t *testing.T) {
	w := newTestWeb(t)
	seen := map[string]bool{}
	for _, r := range w.server.table.Routes() {
		if r.Page != "" && r.View != nil && !w.server.pages.Has(r.Template) {
			t.Errorf("%s: there is no template %q", r.Page, r.Template)
		}
		if r.Summary == "" {
			t.Errorf("%s %s %s: it has no summary", r.Method, r.Pattern, r.Page)
		}
		if r.Pattern != "" && !strings.HasPrefix(r.Pattern, "/v1/") && !slices.Contains([]string{"/healthz", "/readyz",
			"/openapi.json", "/static/{file}"}, r.Pattern) {
			t.Errorf("%s: what is for programs is below /v1", r.Pattern)
		}
		if key := r.Method + " " + r.Pattern + r.Page; seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
	}
	for name, bad := range map[string]route.Route{
		"no rights": {Method: "GET", Pattern: "/v1/x", Class: route.Reads, View: noView},
		"no limits": {Method: "GET", Pattern: "/v1/x", Rights: route.ReadScope, View: noView},
		"a GET that changes state": {Method: "GET", Pattern: "/v1/x", Rights: route.ReadScope, Class: route.Reads,
			View: noView, Changes: true},
		"a POST that says it changes nothing": {Method: "POST", Pattern: "/v1/x", Rights: route.ReadScope,
			Class: route.Reads, View: noView},
		"nothing to call": {Method: "GET", Pattern: "/v1/x", Rights: route.ReadScope, Class: route.Reads},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a route with %s is accepted", name)
				}
			}()
			route.New([]route.Route{bad}, route.Options{})
		}()
	}
}

func noView(*route.Call) (any, error) { return nil, nil }
