package web

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
)

// payloads are texts that would do something where they are not escaped.
func payloads() []string {
	return []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`,
		`</title><script>alert(1)</script>`, `</script><script>alert(1)</script>`, `<!--`, `]]>`, `{{.}}`, `${7*7}`,
		`javascript:alert(1)`, `data:text/html,<script>alert(1)</script>`, "` + alert(1) + `", `\u003cscript\u003e`,
		"\u2028alert(1)\u2029",
		`" onmouseover="alert(1)`, `' autofocus onfocus='alert(1)`, `</textarea><b>`, `</pre><b>`,
		`</style><b>`, `<base href=//evil.example>`, `<meta http-equiv=refresh content=0>`,
		`<a href=//evil.example>x</a>`,
		"<scr\x00ipt>", "<img\x0conerror=alert(1)>", `&lt;script&gt;`, `&#60;script&#62;`, `%3Cscript%3E`,
		"\r\nSet-Cookie: x=1", "\x1b]0;title\x07", "\u202egnp.exe",
		`<ScRiPt>alert(1)</sCrIpT>`, `<script/src=//evil.example/x.js>`, `<script>alert(1)//`, `<<script>alert(1)//<`,
		`<svg><script>alert(1)</script></svg>`, `<svg/onload=alert(1)>`, `<svg><a xlink:href=javascript:alert(1)>x</a>`,
		`<svg><animate onbegin=alert(1) attributeName=x>`, `<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)>`,
		`<iframe src=javascript:alert(1)>`, `<iframe srcdoc="<script>alert(1)</script>">`,
		`<object data=javascript:alert(1)>`, `<embed src=javascript:alert(1)>`, `<body onload=alert(1)>`,
		`<details open ontoggle=alert(1)>`, `<video><source onerror=alert(1)>`, `<audio src=x onerror=alert(1)>`,
		`<input autofocus onfocus=alert(1)>`, `<select><option><img src=x onerror=alert(1)>`,
		`<form action=javascript:alert(1)><button>x`, `<button formaction=javascript:alert(1)>x`,
		`<link rel=stylesheet href=//evil.example/x.css>`, `<style>*{background:url(//evil.example)}</style>`,
		`x" style="background:url(//evil.example)`, `<template><script>alert(1)</script></template>`,
		`<noscript><p title="</noscript><img src=x onerror=alert(1)>">`, `--><script>alert(1)</script>`,
		`*/alert(1)/*`, `';alert(1);//`, `"-alert(1)-"`, `\";alert(1);//`, "java\tscript:alert(1)", " javascript:alert(1)",
		`JaVaScRiPt:alert(1)`, `vbscript:msgbox(1)`, `//evil.example/x`, `http://evil.example/`, `\\evil.example\x`,
		`{{constructor.constructor('alert(1)')()}}`, `<%= 7*7 %>`, `<!--#exec cmd="id"-->`, `<?xml version="1.0"?>`,
		`<xmp><script>alert(1)</script>`, `<plaintext>`, "\ufeff<script>alert(1)</script>", "\u00a0\u200b<b>"}
}

// limitedRequests is how many requests a test makes before it forgets a user's limits.
// The routes are made anew for that, which costs as much as several requests.
const limitedRequests = 10

// TestW1PagesEscape puts each payload into every string that the schedd sends, and checks
// that all pages show it as text.
func TestW1PagesEscape(t *testing.T) {
	t.Parallel()
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	shown := 0
	for _, text := range payloads() {
		w.schedd.text = text
		for i, r := range w.server.table.Routes() {
			if i%limitedRequests == 0 {
				w.forgetLimits()
			}
			if r.Page == "" || !route.IsSafe(r.Method) || strings.Contains(r.Page, "/log/") {
				continue
			}
			q := as(w.request("GET", examplePath(r.Page)+"?q=1.n1", ""), cookie)
			q.Header.Set("Accept", "text/html")
			answer := w.do(q)
			page := answer.Body.String()
			if strings.ContainsAny(text, "<") && html.EscapeString(text) != text && strings.Contains(page, text) {
				t.Errorf("%s shows %q as it is", r.Page, text)
			}
			if strings.Contains(page, `href="javascript:`) || strings.Contains(page, `href="data:`) {
				t.Errorf("%s links to %q", r.Page, text)
			}
			if strings.Contains(html.UnescapeString(page), text) {
				shown++
			}
			if answer.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s: %q has set a cookie", r.Page, text)
			}
		}
	}
	if shown < len(payloads()) {
		t.Errorf("the payloads are on %d pages only", shown)
	}
}

// TestW2JSONEscapes checks that JSON is harmless where it is taken for HTML or
// JavaScript.
func TestW2JSONEscapes(t *testing.T) {
	t.Parallel()
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for _, text := range payloads() {
		w.schedd.text = text
		for i, r := range w.server.table.Routes() {
			if i%limitedRequests == 0 {
				w.forgetLimits()
			}
			if !strings.HasPrefix(r.Pattern, "/v1/") || r.View == nil {
				continue
			}
			answer := w.do(as(w.request("GET", examplePath(r.Pattern), ""), cookie))
			if kind := answer.Header().Get("Content-Type"); !strings.HasPrefix(kind, "application/") ||
				answer.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %s", r.Pattern, kind)
			}
			if strings.ContainsAny(answer.Body.String(), "<>\u2028\u2029\x00") {
				t.Errorf("%s has %q: %s", r.Pattern, text, answer.Body)
			}
		}
	}
}

// TestW7Traversal tries names that lead out of what is served.
func TestW7Traversal(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for _, name := range []string{"..", "%2e%2e", "%252e%252e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "..%5c..",
		"x%00.css", "x%0a.css", "....//", "%c0%ae%c0%ae%2f", "~root", "C:%5cx.css", "page.go", "../page.go"} {
		for _, below := range []string{"/static/", "/v1/tasks/1.n1/log/", "/v1/jobs/", "/v1/tasks/"} {
			w.forgetLimits()
			answer := w.do(as(w.request("GET", below+name, ""), cookie))
			if answer.Code != http.StatusNotFound && answer.Code != http.StatusTemporaryRedirect &&
				answer.Code != http.StatusMovedPermanently {
				t.Errorf("%s%s: got %d %.80s", below, name, answer.Code, answer.Body)
			}
		}
	}
}

// TestW12SameAnswer checks that answers about unknown and hidden jobs differ by their ids
// alone.
func TestW12SameAnswer(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("bob")
	for _, path := range []string{"/v1/jobs/%s", "/v1/jobs/%s/tasks", "/v1/jobs/%s/definition",
		"/v1/jobs/%s/dependencies", "/v1/jobs/%s/flow", "/jobs/%s"} {
		first := w.do(as(w.request("GET", fmt.Sprintf(path, "77.n1"), ""), cookie))
		for _, id := range []string{"78", hiddenJob[:2]} {
			w.forgetLimits()
			other := w.do(as(w.request("GET", fmt.Sprintf(path, id+".n1"), ""), cookie))
			same := strings.ReplaceAll(first.Body.String(), "77", id) == other.Body.String()
			if first.Code != http.StatusNotFound || other.Code != first.Code || !same ||
				first.Header().Get("ETag")+other.Header().Get("ETag") != "" {
				t.Errorf("%s: got %d %s and %d %s", path, first.Code, first.Body, other.Code, other.Body)
			}
		}
	}
}

// TestW13Bounds sends what costs much: deep and long bodies, absurd limits, floods.
func TestW13Bounds(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for name, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"deep JSON":      {"POST", "/v1/acts", strings.Repeat(`{"a":`, 10_000), 400},
		"deep arrays":    {"POST", "/v1/acts", strings.Repeat(`[`, 60_000), 400},
		"a long body":    {"POST", "/v1/acts", `{"verb":"` + strings.Repeat("x", 100_000) + `"}`, 413},
		"two documents":  {"POST", "/v1/acts", `{} {}`, 400},
		"foreign member": {"POST", "/v1/acts", `{"verb":"hold","owner":"bob"}`, 400},
		"a huge limit":   {"GET", "/v1/jobs?limit=1000000000", "", 400},
		"limit below 1":  {"GET", "/v1/jobs?limit=-1", "", 400},
		"a long cursor":  {"GET", "/v1/jobs?after=" + strings.Repeat("A", 9000), "", 400},
		"a bad cursor":   {"GET", "/v1/jobs?after=%00", "", 400},
		"a bad state":    {"GET", "/v1/jobs?state=%3Cb%3E", "", 400},
		"a long word":    {"GET", "/v1/search?q=" + strings.Repeat("a", 1000), "", 400},
		"a bad offset":   {"GET", "/v1/tasks/1.n1/log/out?offset=-1", "", 400},
		"many selectors": {"GET", "/v1/jobs?select=" + strings.Repeat("1+", 1001), "", 429},
		"a job file that never ends": {"POST", "/v1/plan",
			`{"text":"job \"a\" { command = [for a in range(1000): join(\"\", [for b in range(1000): ` +
				`format(\"%s\", b)])] }"}`,
			429},
	} {
		w.forgetLimits()
		began := time.Now()
		answer := w.do(as(w.request(c.method, c.path, c.body), cookie))
		if answer.Code != c.want || time.Since(began) > 12*time.Second {
			t.Errorf("%s: got %d %.200s after %v, want %d", name, answer.Code, answer.Body, time.Since(began), c.want)
		}
	}
	w.forgetLimits()
	refused := 0
	for range 200 {
		if answer := w.do(as(w.request("GET", "/v1/session", ""), cookie)); answer.Code == 429 {
			if refused++; answer.Header().Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d of 200 reads at once were refused", refused)
	}
	if answer := w.do(as(w.request("GET", "/v1/session", ""), w.logIn("bob"))); answer.Code != http.StatusOK {
		t.Errorf("another user gets %d", answer.Code)
	}
}

// TestW13Slowloris opens connections that send a header byte by byte: they are cut off,
// and others are served meanwhile.
func TestW13Slowloris(t *testing.T) {
	w := newTestWeb(t)
	server := httptest.NewUnstartedServer(w.server.table)
	server.Config.ReadHeaderTimeout = 500 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	var slow []net.Conn
	for range 100 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
		slow = append(slow, conn)
	}
	answer, err := server.Client().Get(server.URL + "/healthz")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("meanwhile: %v %+v", err, answer)
	}
	answer.Body.Close()
	for _, conn := range slow {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); err == nil && n == 0 {
			t.Error("a slow connection is open")
		} else if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Error("a slow connection is not cut off")
		}
	}
}

// TestStepUpLogin checks that a browser whose user logged in long ago may not change what
// administrators keep. An API token with the scope may.
func TestStepUpLogin(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	put := func(credential any) int {
		return w.do(as(w.request("PUT", "/v1/drains", `{"node":"n1","reason":"disk"}`), credential)).Code
	}
	if code := put(cookie); code != http.StatusNoContent {
		t.Errorf("a fresh login: %d", code)
	}
	w.server.store.Sessions("ann")[0].Proved = time.Now().Add(-16 * time.Minute)
	if code := put(cookie); code != http.StatusForbidden {
		t.Errorf("an old login: %d", code)
	}
	if code := put(w.apiToken("ann", session.Admin)); code != http.StatusNoContent {
		t.Errorf("a token: %d", code)
	}
	for _, want := range []string{`"object":{"node":"n1","reason":"disk"}`, `"before":[]`, `"way":"token"`} {
		if !strings.Contains(w.audit.String(), want) {
			t.Errorf("the log of writes has no %s: %s", want, w.audit)
		}
	}
}
