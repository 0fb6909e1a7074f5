package ownerpage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
)

// fakeMachine is a machine that can be paused.
type fakeMachine struct {
	text   string // of names and the like
	paused string // for how long; empty: it is not
}

func (f *fakeMachine) Show(context.Context) (document.OwnMachine, error) {
	m := document.OwnMachine{Version: 1, State: "last touched 3m ago", Available: f.paused == "", Policy: f.text,
		Unavailable: f.text, Freezes: []document.OwnerFreeze{{Time: "2026-11-28T10:00:00Z", Took: 0.0123, Tasks: 2}},
		Tasks:   []document.MachineTask{{Task: "1.n1", Name: f.text, Owner: "ann", State: "running", CPUs: 2}},
		Sources: []document.SourceHealth{{Name: "console", Health: "well", Text: f.text}}}
	if f.paused != "" {
		m.Pause = &document.MachinePause{By: "ann", Reason: f.text}
	}
	return m, nil
}

func (f *fakeMachine) Pause(_ context.Context, words, _ string) error {
	if words == "never" {
		return roost.Usage
	}
	f.paused = words
	return nil
}

func (f *fakeMachine) Resume(context.Context) error { f.paused = ""; return nil }

const testHost = "127.0.0.1:4711"

// do makes a request as a browser on this server's page would.
func do(h http.Handler, method, path, body string, cookie *http.Cookie, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+testHost+path, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "text/html")
	if r.Header.Set("Content-Type", "application/x-www-form-urlencoded"); strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

// newTestServer returns a server, and the cookie of its user.
func newTestServer(t *testing.T, m Machine) (*Server, *http.Cookie) {
	t.Helper()
	v, token, err := New(m, "ann")
	if err != nil {
		t.Fatal(err)
	}
	answer := do(v, "POST", "/v1/session", `{"token":"`+token+`"}`, nil)
	if answer.Code != http.StatusCreated || len(answer.Result().Cookies()) != 1 {
		t.Fatalf("login: %d %s", answer.Code, answer.Body)
	}
	if answer := do(v, "POST", "/v1/session", `{"token":"`+token+`"}`, nil); answer.Code != http.StatusForbidden {
		t.Errorf("the link a second time: %d", answer.Code)
	}
	cookie := answer.Result().Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Name == "roost" {
		t.Errorf("the cookie is %+v", cookie)
	}
	return v, cookie
}

// TestW10LateLink opens the link in time, and when its time is over.
func TestW10LateLink(t *testing.T) {
	for wait, want := range map[time.Duration]int{59 * time.Second: http.StatusCreated,
		time.Minute: http.StatusForbidden} {
		synctest.Test(t, func(t *testing.T) {
			v, token, err := New(&fakeMachine{}, "ann")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait) // fake time
			answer := do(v, "POST", "/v1/session", `{"token":"`+token+`"}`, nil)
			if answer.Code != want {
				t.Errorf("after %v: %d %s", wait, answer.Code, answer.Body)
			}
		})
	}
}

// TestForeignRequests checks that the page is for who has the link, and for no other
// site.
func TestForeignRequests(t *testing.T) {
	f := &fakeMachine{}
	v, cookie := newTestServer(t, f)
	for _, r := range v.routes() {
		for _, path := range []string{r.Pattern, r.Page} {
			if path = strings.Replace(path, "{$}", "", 1); path == "" || r.Rights.Scope() != "" ||
				strings.HasPrefix(path, "/static") || strings.HasSuffix(path, "/session") || path == "/login" {
				continue
			}
			if code := do(v, r.Method, path, "", nil).Code; code != http.StatusUnauthorized &&
				code != http.StatusSeeOther {
				t.Errorf("%s %s without a login: %d", r.Method, path, code)
			}
			if code := do(v, r.Method, path, "", cookie, "Host", "evil.example").Code; code !=
				http.StatusMisdirectedRequest {
				t.Errorf("%s %s for another host: %d", r.Method, path, code)
			}
			if r.Method == "GET" {
				continue
			}
			for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
				{"Sec-Fetch-Site", "", "Origin", "http://127.0.0.1:1"}} {
				if code := do(v, r.Method, path, "for=1h", cookie, header...).Code; code != http.StatusForbidden {
					t.Errorf("%s %s, %v: %d", r.Method, path, header, code)
				}
			}
		}
	}
	if f.paused != "" {
		t.Error("a stranger has paused the machine")
	}
	if code := do(v, "POST", "/v1/session", `{"token":""}`, nil).Code; code != http.StatusForbidden {
		t.Errorf("an empty token: %d", code)
	}
}

// TestPauseAndResume uses the buttons, and what programs have for them.
func TestPauseAndResume(t *testing.T) {
	f := &fakeMachine{text: "<b>x</b>"}
	v, cookie := newTestServer(t, f)
	page := do(v, "GET", "/", "", cookie)
	for _, want := range []string{"Lent to the pool", "12.3ms", "&lt;b&gt;x&lt;/b&gt;", "last touched 3m ago"} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("the page has no %q: %s", want, page.Body)
		}
	}
	if page.Header().Get("Content-Security-Policy") == "" || strings.Contains(page.Body.String(), "<b>x") {
		t.Errorf("%v %s", page.Header(), page.Body)
	}
	form := url.Values{"for": {"until tomorrow"}, "reason": {"a talk"}}.Encode()
	if answer := do(v, "POST", "/pause", form, cookie); answer.Code != http.StatusSeeOther ||
		f.paused != "until tomorrow" {
		t.Errorf("pause: %d, %q", answer.Code, f.paused)
	}
	if answer := do(v, "GET", "/", "", cookie); !strings.Contains(answer.Body.String(), "paused") {
		t.Errorf("it is paused, and the page is %s", answer.Body)
	}
	if answer := do(v, "POST", "/pause", "for=never", cookie); answer.Code != http.StatusBadRequest {
		t.Errorf("a mistake: %d", answer.Code)
	}
	if answer := do(v, "POST", "/v1/machine/resume", "{}", cookie); answer.Code != http.StatusOK || f.paused != "" ||
		!strings.Contains(answer.Body.String(), `"lent":true`) {
		t.Errorf("resume: %d %s, %q", answer.Code, answer.Body, f.paused)
	}
	do(v, "POST", "/logout", "", cookie)
	if answer := do(v, "GET", "/v1/machine", "", cookie); answer.Code != http.StatusUnauthorized {
		t.Errorf("after logout: %d", answer.Code)
	}
}

// TestIdleEnd checks that the server ends half an hour after the last request.
func TestIdleEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &Server{}
		v.lastUsed.Store(time.Now().UnixNano())
		began := time.Now()
		time.AfterFunc(20*time.Minute, func() { v.lastUsed.Store(time.Now().UnixNano()) })
		v.awaitIdle(t.Context())
		if past := time.Since(began); past != 50*time.Minute {
			t.Errorf("it ended after %v", past)
		}
	})
}
