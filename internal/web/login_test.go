package web

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/web/session"
)

// status makes a read with a credential and returns the status.
func (w *testWeb) status(credential any) int {
	w.forgetLimits()
	return w.do(as(w.request("GET", "/v1/session", ""), credential)).Code
}

// TestW9Sessions checks that a login makes a new cookie, whatever the browser had. Logout
// and revocation end a session.
func TestW9Sessions(t *testing.T) {
	w := newTestWeb(t)
	planted := &http.Cookie{Name: "roost", Value: strings.Repeat("A", 43)}
	q := as(w.request("POST", "/v1/session", `{"token":"`+w.loginToken("ann")+`"}`), planted)
	answer := w.do(q)
	cookie := answer.Result().Cookies()[0]
	if answer.Code != http.StatusCreated || cookie.Value == planted.Value ||
		w.status(planted) != http.StatusUnauthorized {
		t.Errorf("a planted cookie holds: %d %v", answer.Code, cookie)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" ||
		len(cookie.Value) != 43 {
		t.Errorf("the cookie is %v", cookie)
	}
	// a second login of the same browser ends the first session
	q = as(w.request("POST", "/v1/session", `{"token":"`+w.loginToken("ann")+`"}`), cookie)
	second := w.do(q).Result().Cookies()[0]
	if w.status(cookie) != http.StatusUnauthorized || w.status(second) != http.StatusOK {
		t.Error("the session before is open")
	}
	if code := w.do(as(w.request("DELETE", "/v1/session", ""), second)).Code; code != http.StatusNoContent ||
		w.status(second) != http.StatusUnauthorized {
		t.Errorf("logout: %d, and then %d", code, w.status(second))
	}
	for _, l := range w.schedd.logins.List(func(login.HostAccount) bool { return true }) {
		if l.Revoked.IsZero() {
			t.Errorf("login %s outlives its session", l.ID())
		}
	}
	third := w.logIn("ann")
	open := w.server.store.Sessions("ann")[0]
	for _, l := range w.schedd.logins.List(func(login.HostAccount) bool { return true }) {
		w.schedd.logins.Revoke(l.Serial, func(login.HostAccount) bool { return true }, time.Now())
	}
	if err := open.Verify(t.Context(), time.Now().Add(time.Minute)); !session.IsLoginError(err) {
		t.Errorf("a revoked login: %v", err)
	}
	// any view that asks the schedd ends the session at once
	if code := w.do(as(w.request("GET", "/v1/logins", ""), third)).Code; code != http.StatusUnauthorized {
		t.Errorf("a revoked login still reads: %d", code)
	}
	if w.status(third) != http.StatusUnauthorized || w.server.store.Count() != 0 {
		t.Error("the session outlives its login")
	}
}

// TestW10OneTimeCode races 100 browsers for one link, and tries it again and when its
// time is over. None of it may be in a log.
func TestW10OneTimeCode(t *testing.T) {
	w := newTestWeb(t)
	token := w.loginToken("ann")
	var mu sync.Mutex
	var all sync.WaitGroup
	won := 0
	for range 100 {
		all.Go(func() {
			if _, _, err := w.server.store.Login(t.Context(), session.Proof{Token: token}, "test"); err == nil {
				mu.Lock()
				defer mu.Unlock()
				won++
			}
		})
	}
	all.Wait()
	if won != 1 {
		t.Errorf("%d have logged in", won)
	}
	if answer := w.do(w.request("POST", "/v1/session", `{"token":"`+token+`"}`)); answer.Code != http.StatusForbidden {
		t.Errorf("again: %d", answer.Code)
	}
	late, _, err := w.schedd.logins.MakeToken(accounts["ann"],
		login.TokenLifetimes{Token: time.Minute, Login: time.Hour}, time.Now().Add(-2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if answer := w.do(w.request("POST", "/v1/session", `{"token":"`+late.String()+`"}`)); answer.Code != 403 {
		t.Errorf("late: %d", answer.Code)
	}
	for name, text := range map[string]string{"log": w.logged.String(), "audit": w.audit.String()} {
		if strings.Contains(text, token) || strings.Contains(text, late.String()) || text == "" {
			t.Errorf("the %s has the code, or nothing: %s", name, text)
		}
	}
}

// TestW5ForeignHost checks that only the names of the node file are answered for, on
// every route.
func TestW5ForeignHost(t *testing.T) {
	w := newTestWeb(t)
	for _, r := range w.server.table.Routes() {
		for _, host := range []string{"evil.example", "127.0.0.1.evil.example:9780", "[::1]:9780", "", "127.0.0.2",
			"localhost.evil.example"} {
			q := w.request(r.Method, examplePath(r.Pattern+r.Page), "")
			q.Host = host
			if answer := w.do(q); answer.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s %s of host %q: got %d", r.Method, q.URL.Path, host, answer.Code)
			}
		}
	}
	for _, host := range []string{"127.0.0.1", "LOCALHOST:1234", "localhost.", "127.0.0.1:9780"} {
		q := w.request("GET", "/healthz", "")
		q.Host = host
		if answer := w.do(q); answer.Code != http.StatusOK {
			t.Errorf("host %q: got %d", host, answer.Code)
		}
	}
}

// TestW19ForgedProxyHeaders checks that nobody but a proxy on a unix socket says whom a
// request comes from.
func TestW19ForgedProxyHeaders(t *testing.T) {
	w := newTestWeb(t)
	for remote, want := range map[string]string{"192.0.2.7:1234": "192.0.2.7", "@": "198.51.100.9"} {
		q := w.request("POST", "/v1/session", `{"token":"`+w.loginToken("ann")+`"}`)
		q.RemoteAddr = remote
		q.Header.Set("X-Forwarded-For", "203.0.113.1, 198.51.100.9")
		q.Header.Set("X-Real-Ip", "203.0.113.1")
		q.Header.Set("Forwarded", "for=203.0.113.1")
		w.do(q)
		if got := w.server.store.Sessions("ann"); len(got) != 1 || got[0].From != want {
			t.Errorf("from %s: got %v", remote, got)
		}
		w.server.store.Close(w.server.store.Sessions("ann")[0])
	}
}

// TestW20Secrets plants the secrets of logins and looks for them in all that is stored,
// logged and shown.
func TestW20Secrets(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	token := w.apiToken("ann", session.Read)
	secrets := []string{cookie.Value, token}
	for _, path := range []string{"/v1/session", "/v1/logins", "/v1/tokens", "/", "/jobs", "/v1/jobs"} {
		text := w.do(as(w.request("GET", path, ""), cookie)).Body.String()
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows a secret", path)
			}
		}
	}
	w.do(as(w.request("GET", "/v1/nothing", ""), token))
	texts := map[string]string{"log": w.logged.String(), "audit": w.audit.String()}
	for _, name := range []string{"tokens.json"} {
		text, err := os.ReadFile(filepath.Join(w.server.node.WebDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(filepath.Join(w.server.node.WebDir(), name)); info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		for _, secret := range append(secrets, "PRIVATE KEY", `"key"`) {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
	}
}

// TestTokenSurvivesRestart checks that an API token holds after a restart of the daemon,
// and no longer when it was removed.
func TestTokenSurvivesRestart(t *testing.T) {
	w := newTestWeb(t)
	token := w.apiToken("ann", session.Read)
	if w.status(token) != http.StatusOK {
		t.Fatal("a new token is refused")
	}
	again, err := newServer(w.server.node, w.server.log, w.audit, metrics.NewWeb(nil))
	if err != nil {
		t.Fatal(err)
	}
	old := w.server
	w.server = again
	if w.status(token) != http.StatusOK {
		t.Error("after a restart the token is refused")
	}
	cookie := w.logIn("ann")
	id := w.server.store.Tokens("ann")[0].ID
	if answer := w.do(as(w.request("DELETE", "/v1/tokens/"+id, ""), w.logIn("bob"))); answer.Code != 404 {
		t.Errorf("bob has removed it: %d", answer.Code)
	}
	if answer := w.do(as(w.request("DELETE", "/v1/tokens/"+id, ""), cookie)); answer.Code != http.StatusOK {
		t.Errorf("remove: %d %s", answer.Code, answer.Body)
	}
	if w.status(token) != http.StatusUnauthorized {
		t.Error("a removed token is good")
	}
	w.server = old
}

// TestW14LogInjection sends line breaks and escapes where they reach the logs: each write
// stays one line.
func TestW14LogInjection(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	before := strings.Count(w.audit.String(), "\n")
	body := `{"verb":"hold","select":["all\r\n{\"msg\":\"forged\"}","\u001b[2J"],"reason":"a\nb","dry_run":true}`
	w.do(as(w.request("POST", "/v1/acts", body), cookie))
	q := as(w.request("DELETE", "/v1/tokens/x%0d%0aforged%1b", ""), cookie)
	w.do(q)
	added := strings.Split(strings.TrimSpace(w.audit.String()), "\n")[before:]
	if len(added) != 2 {
		t.Errorf("two writes have %d lines: %q", len(added), added)
	}
	for _, line := range append(added, strings.Split(w.logged.String(), "\n")...) {
		if strings.ContainsAny(line, "\r\x1b") || strings.HasPrefix(line, "forged") {
			t.Errorf("line %q", line)
		}
	}
	answer := w.do(as(w.request("GET", "/v1/jobs/1%0d%0aX-Evil:1", ""), cookie))
	if answer.Header().Get("X-Evil") != "" {
		t.Error("a header was injected")
	}
}

// TestW22Audit checks that each write is recorded, with who, whence, how, and what came
// of it; refused writes, too.
func TestW22Audit(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	w.do(as(w.request("POST", "/v1/acts", `{"verb":"hold","select":["1.n1"],"expect":1}`), cookie))
	w.do(as(w.request("POST", "/v1/acts", `{"verb":"hold","select":["1.n1"],"expect":5}`), cookie))
	lines := strings.Split(strings.TrimSpace(w.audit.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %q", lines)
	}
	for i, wants := range [][]string{{`"user":"ann"`, `"from":"192.0.2.1"`, `"result":"done"`},
		{`"user":"ann"`, `"way":"link"`, `"verb":"hold"`, `"select":["1.n1"]`, `"changed":1`, `"result":"done"`},
		{`"user":"ann"`, `"result":"1 jobs match, and not 5"`}} {
		for _, want := range wants {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %d has no %s: %s", i, want, lines[i])
			}
		}
	}
}
