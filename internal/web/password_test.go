package web

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasswordForm logs in by a password. It is in no log and no answer, and goes to the
// checker as it was typed. Only a form brings it.
func TestPasswordForm(t *testing.T) {
	w := newTestWeb(t)
	const password = "pass + & % = \u00fc word"
	checker := filepath.Join(w.dir, "no-pam") // it does what roost-pam does for one password
	script := "#!/bin/sh\nread -r head\npassword=$(/bin/cat)\n" +
		"case $head in *'\"user\":\"ann\",\"from\":\"192.0.2.1\"'*) ;; *) password= ;; esac\n" +
		"answer='{\"error\":\"no\"}'\nif [ \"$password\" = '" + password + "' ]; " +
		"then answer='{\"user\":\"ann\"}'; fi\necho \"$answer\"\n"
	if err := os.WriteFile(checker, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	post := func(path, kind, body string) *http.Response {
		w.forgetLimits()
		q := w.request("POST", path, body)
		q.Header.Set("Content-Type", kind)
		return w.do(q).Result()
	}
	const form = "application/x-www-form-urlencoded"
	good := url.Values{"user": {"ann"}, "password": {password}}.Encode()
	if answer := post("/login/password", form, good); answer.StatusCode != http.StatusForbidden {
		t.Errorf("without the block pam: %d", answer.StatusCode)
	}
	w.server.node.Web.PAMService = "roost"
	w.forgetLimits()
	page := w.do(w.request("GET", "/login", "")).Body.String()
	if !strings.Contains(page, `action="/login/password"`) || !strings.Contains(page, `method="post"`) {
		t.Errorf("the page has no form for a password: %s", page)
	}
	for name, c := range map[string]struct {
		path, kind, body string
		want             int
	}{
		"right":      {"/login/password", form, good, http.StatusSeeOther},
		"wrong":      {"/login/password", form, "user=ann&password=x", http.StatusForbidden},
		"other":      {"/login/password", form, strings.Replace(good, "ann", "bob", 1), http.StatusForbidden},
		"empty":      {"/login/password", form, "user=ann", http.StatusBadRequest},
		"JSON":       {"/login/password", "application/json", `{"user":"ann"}`, http.StatusUnsupportedMediaType},
		"in the API": {"/v1/session", "application/json", `{"user":"ann","password":"x"}`, http.StatusBadRequest},
	} {
		if answer := post(c.path, c.kind, c.body); answer.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", name, answer.StatusCode, c.want)
		}
	}
	q := w.request("GET", "/login/password?"+good, "")
	if answer := w.do(q); answer.Code != http.StatusNotFound {
		t.Errorf("in the address: %d", answer.Code)
	}
	for name, text := range map[string]string{"log": w.logged.String(), "audit": w.audit.String()} {
		if strings.Contains(text, password) || strings.Contains(text, url.QueryEscape(password)) ||
			!strings.Contains(text, "password") {
			t.Errorf("the %s has the password, or nothing: %s", name, text)
		}
	}
	if s := w.server.store.Sessions("ann"); len(s) != 1 || string(s[0].Way) != "password" {
		t.Errorf("the sessions are %v", s)
	}
}
