package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestObjectForms changes what administrators keep by the forms of pages.
func TestObjectForms(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.cell = map[string]string{"drain": `[{"name":"n1","object":{"node":"n1"},"set_by":"ann"}]`}
	cookie := w.logIn("ann")
	for _, f := range []struct{ path, body, kind, want string }{
		{"/drains", "node=n7&reason=new+fan&evict=yes&deadline=2026-03-01T12:00:00Z&from=", "drain",
			`{"deadline":"2026-03-01T12:00:00Z","evict":true,"node":"n7","reason":"new fan"}`},
		{"/quotas", "user=each&band=batch&most.cpus=2.5&most.memory_bytes=4GiB&most.tasks=100", "quota",
			`{"band":"batch","most":{"cpus":2.5,"memory_bytes":4294967296,"tasks":100},"user":"each"}`},
		{"/limits", "name=matlab&count=12", "limit", `{"count":12,"name":"matlab"}`},
		{"/queues", "name=long&enabled=no", "queue", `{"enabled":false,"name":"long"}`},
		{"/groups", "name=physics&fraction=0.25&accept_surplus=yes", "group",
			`{"accept_surplus":true,"fraction":0.25,"name":"physics"}`},
		{"/reservations", "name=r&nodes=n1,+n2&amount.gpus=2", "reservation",
			`{"amount":{"gpus":2},"name":"r","nodes":["n1","n2"]}`},
		{"/admins", "who=bob&capabilities=quota+drain", "admin", `{"capabilities":["quota","drain"],"who":"bob"}`},
	} {
		w.forgetLimits()
		w.schedd.sets = nil
		answer := w.do(as(w.form(f.path, f.body), cookie))
		if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != f.path || len(w.schedd.sets) != 1 ||
			w.schedd.sets[0].GetKind() != f.kind || w.schedd.sets[0].GetVerb() != "set" {
			t.Errorf("%s: %d %s, set %v", f.path, answer.Code, answer.Body, w.schedd.sets)
			continue
		}
		if got := string(w.schedd.sets[0].GetObject()); got != f.want {
			t.Errorf("%s: set %s, want %s", f.path, got, f.want)
		}
		page := w.do(as(w.page(f.path), cookie)).Body.String()
		for field := range strings.SplitSeq(f.body, "&") {
			if name, _, _ := strings.Cut(field, "="); !strings.Contains(page, `name="`+name+`"`) {
				t.Errorf("the form at %s has no field %s", f.path, name)
			}
		}
	}
	w.schedd.sets = nil
	if page := w.do(as(w.page("/drains"), cookie)).Body.String(); !strings.Contains(page, `name="name" value="n1"`) {
		t.Errorf("the page of drains has no button that removes one: %s", page)
	}
	answer := w.do(as(w.form("/drains/remove", "name=n1"), cookie))
	if answer.Code != http.StatusSeeOther || len(w.schedd.sets) != 1 || w.schedd.sets[0].GetVerb() != "remove" ||
		w.schedd.sets[0].GetName() != "n1" {
		t.Errorf("remove: %d %s, %v", answer.Code, answer.Body, w.schedd.sets)
	}
	w.schedd.sets = nil
	for path, bodies := range map[string][]string{
		"/drains": {"", "reason=x", "node=n1&evict=maybe", "node=n1&from=today"},
		"/limits": {"name=x", "name=x&count=many", "name=x&count=NaN", "name=x&count=1e400"},
		"/quotas": {"band=batch&most.memory_bytes=-1", "user=x"}, "/drains/remove": {"", "node=n1"}} {
		for _, body := range bodies {
			w.forgetLimits()
			if answer := w.do(as(w.form(path, body), cookie)); answer.Code != http.StatusBadRequest {
				t.Errorf("%s with %q: %d %s", path, body, answer.Code, answer.Body)
			}
		}
	}
	if len(w.schedd.sets) > 0 {
		t.Errorf("a refused form has set %v", w.schedd.sets)
	}
	if log := w.audit.String(); !strings.Contains(log, "new fan") || !strings.Contains(log, `"POST /drains/remove`) &&
		!strings.Contains(log, "POST /drains/remove") {
		t.Errorf("the log of writes lacks the changes: %s", log)
	}
}

// TestObjectFormAttacks sends forms as an attacker would. They come from another site,
// after the logout, without a new login, and from somebody who is no administrator.
func TestObjectFormAttacks(t *testing.T) {
	w := newTestWeb(t)
	cookie, bob := w.logIn("ann"), w.logIn("bob")
	const path, body = "/drains", "node=n7"
	attack := func(name string, want int, q *http.Request) {
		t.Helper()
		w.forgetLimits()
		if answer := w.do(q); answer.Code != want {
			t.Errorf("%s: %d %s, want %d", name, answer.Code, answer.Body, want)
		}
	}
	other := as(w.form(path, body), cookie)
	other.Header.Set("Sec-Fetch-Site", "cross-site")
	attack("another site", http.StatusForbidden, other)
	other = as(w.form(path, body), cookie)
	other.Header.Del("Sec-Fetch-Site")
	attack("no origin", http.StatusForbidden, other)
	other = as(w.form(path, body), cookie)
	other.Header.Set("Content-Type", "text/plain")
	attack("a text", http.StatusUnsupportedMediaType, other)
	attack("a GET", http.StatusOK, as(w.page(path+"?"+body), cookie)) // it only shows the page
	attack("nobody", http.StatusUnauthorized, w.form(path, body))
	attack("no administrator", http.StatusForbidden, as(w.form(path, body), bob))
	attack("no administrator, remove", http.StatusForbidden, as(w.form(path+"/remove", "name=n7"), bob))
	rebound := as(w.form(path, body), cookie)
	rebound.Host = "evil.example"
	attack("another host", http.StatusMisdirectedRequest, rebound)
	w.server.store.Sessions("ann")[0].Proved = time.Now().Add(-16 * time.Minute)
	attack("an old login", http.StatusForbidden, as(w.form(path, body), cookie))
	attack("an old login, remove", http.StatusForbidden, as(w.form(path+"/remove", "name=n7"), cookie))
	if page := w.do(as(w.page(path), cookie)).Body.String(); !strings.Contains(page, "log in again") {
		t.Errorf("the form does not say that the login is too old: %s", page)
	}
	w.server.store.Close(w.server.store.Sessions("ann")[0])
	attack("after the logout", http.StatusUnauthorized, as(w.form(path, body), cookie))
	if len(w.schedd.sets) > 0 {
		t.Errorf("an attacker has set %v", w.schedd.sets)
	}
}

// form makes the request of a form as a browser of this server would.
func (w *testWeb) form(path, body string) *http.Request {
	q := w.request("POST", path, body)
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return q
}

// page makes the request for a page.
func (w *testWeb) page(path string) *http.Request {
	q := httptest.NewRequest("GET", testURL+path, nil)
	q.Host = "127.0.0.1:9780"
	q.Header.Set("Accept", "text/html")
	return q
}
