package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// chooseZone uses the switch below a page.
func (w *testWeb) chooseZone(cookie *http.Cookie, zone, back string) *http.Response {
	w.Helper()
	w.forgetLimits()
	r := as(w.request("POST", "/zone", url.Values{"zone": {zone}, "back": {back}}.Encode()), cookie)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.do(r).Result()
}

// TestZone chooses between UTC and local time. The choice holds for all pages of the
// browser.
func TestZone(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for _, zone := range []string{"utc", "local"} {
		answer := w.chooseZone(cookie, zone, "/jobs?all=1")
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/jobs?all=1" ||
			len(answer.Cookies()) != 1 {
			t.Fatalf("%s: %v", zone, answer)
		}
		chosen := answer.Cookies()[0]
		if !chosen.HttpOnly || chosen.SameSite != http.SameSiteStrictMode || chosen.Value != zone {
			t.Errorf("the cookie is %v", chosen)
		}
		for _, path := range []string{"/", "/jobs", "/jobs/1.n1"} {
			r := as(w.request("GET", path, ""), cookie)
			r.AddCookie(chosen)
			text := w.do(r).Body.String()
			if !strings.Contains(text, ` data-zone="`+zone+`">`) ||
				!strings.Contains(text, `name="back" value="`+path+`"`) {
				t.Errorf("%s with %s: %s", path, zone, text)
			}
		}
	}
	text := w.do(as(w.request("GET", "/", ""), cookie)).Body.String()
	if !strings.Contains(text, "Times are in UTC.") || strings.Contains(text, "data-zone=") {
		t.Errorf("without a choice: %s", text)
	}
}

// TestZoneAttacks tries what the switch may not do: lead elsewhere, and put words into
// cookies and pages.
func TestZoneAttacks(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for _, back := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, "javascript:alert(1)", "",
		"/x\r\nSet-Cookie: a=b", "/x\x00", "/\tevil.example", "jobs"} {
		answer := w.chooseZone(cookie, "utc", back)
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/" ||
			len(answer.Cookies()) != 1 {
			t.Errorf("%q: leads to %q with %v", back, answer.Header.Get("Location"), answer.Cookies())
		}
	}
	for _, zone := range []string{"", "UTC", "Europe/Berlin", `"><script>`, strings.Repeat("x", 10_000)} {
		refused := w.chooseZone(cookie, zone, "/")
		if refused.StatusCode != http.StatusBadRequest || len(refused.Cookies()) > 0 {
			t.Errorf("%.20q: %v", zone, refused.Status)
		}
		r := as(w.request("GET", "/", ""), cookie)
		r.AddCookie(&http.Cookie{Name: "roost-zone", Value: url.QueryEscape(zone)})
		if answer := w.do(r); answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "data-zone=") {
			t.Errorf("a cookie with %.20q is a choice: %d", zone, answer.Code)
		}
	}
}
