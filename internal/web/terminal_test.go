package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/web/session"
)

// terminalClient is the page of a terminal.
type terminalClient struct {
	*testing.T
	conn *websocket.Conn
	end  struct {
		Ended       bool
		Code        int
		Error, Cure string
	}
	taken int
}

// serveTerminals serves the web daemon where a browser can reach it.
func (w *testWeb) serveTerminals() *httptest.Server {
	server := httptest.NewServer(w.server.table)
	w.Cleanup(server.Close)
	return server
}

// ticket gets a ticket for a task.
func (w *testWeb) ticket(cookie *http.Cookie, task string) string {
	w.Helper()
	answer := w.do(as(w.request("POST", "/v1/tasks/"+task+"/terminal", ""), cookie))
	var body struct{ Ticket string }
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || answer.Code != http.StatusCreated {
		w.Fatalf("ticket: %d %s", answer.Code, answer.Body)
	}
	return body.Ticket
}

// dial opens a WebSocket as a page would. A header with an empty value is left out.
func (w *testWeb) dial(server *httptest.Server, credential any, task, ticket string,
	headers ...string) (*terminalClient, int) {
	w.Helper()
	q := as(httptest.NewRequest("GET", "/", nil), credential)
	q.Header.Set("Origin", server.URL)
	for i := 0; i < len(headers); i += 2 {
		if q.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			q.Header.Del(headers[i])
		}
	}
	conn, answer, err := websocket.Dial(w.Context(), server.URL+"/v1/tasks/"+task+"/terminal?rows=30&columns=90",
		&websocket.DialOptions{HTTPHeader: q.Header,
			Subprotocols: []string{"roost-terminal", "roost-ticket." + ticket}})
	if err != nil {
		if answer == nil {
			w.Fatal(err)
		}
		return nil, answer.StatusCode
	}
	w.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return &terminalClient{T: w.T, conn: conn}, answer.StatusCode
}

// openTerminal opens a terminal in job 1 and reads its first line.
func (w *testWeb) openTerminal(server *httptest.Server, cookie *http.Cookie) *terminalClient {
	w.Helper()
	c, code := w.dial(server, cookie, "1.n1", w.ticket(cookie, "1.n1"))
	if c == nil {
		w.Fatalf("a terminal: %d", code)
	}
	if got, want := string(c.read(24)), "1.n1 true 30x90\n"; got != want {
		w.Fatalf("got %q, want %q", got, want)
	}
	return c
}

// next reads a message, and returns the bytes of output; nil with the end of the shell.
func (c *terminalClient) next() []byte {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for {
		kind, data, err := c.conn.Read(ctx)
		if err != nil {
			c.end.Error += " " + err.Error()
			return nil
		}
		if kind == websocket.MessageBinary {
			return data
		}
		var m struct{ Taken int }
		if err := errors.Join(json.Unmarshal(data, &m), json.Unmarshal(data, &c.end)); err != nil {
			c.Fatalf("%s: %v", data, err)
		}
		if c.taken += m.Taken; c.end.Ended {
			return nil
		}
	}
}

// read reads output until a line ends or there are n bytes, and reports it as shown.
func (c *terminalClient) read(n int) (all []byte) {
	c.Helper()
	for len(all) < n && !bytes.HasSuffix(all, []byte("\n")) {
		data := c.next()
		if data == nil {
			return all
		}
		all = append(all, data...)
		c.report(fmt.Sprintf(`{"shown":%d}`, len(data)))
	}
	return all
}

func (c *terminalClient) report(text string) {
	c.Helper()
	if err := c.conn.Write(c.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.Fatal(err)
	}
}

func (c *terminalClient) typeIn(data []byte) {
	c.Helper()
	if err := c.conn.Write(c.Context(), websocket.MessageBinary, data); err != nil {
		c.Fatal(err)
	}
}

// await waits until a condition of another goroutine holds.
func (w *testWeb) await(what string, limit time.Duration, holds func() bool) {
	w.Helper()
	ticks, late := time.NewTicker(10*time.Millisecond), time.After(limit)
	defer ticks.Stop()
	for !holds() {
		select {
		case <-ticks.C:
		case <-late:
			w.Fatalf("%s: not after %v", what, limit)
		}
	}
}

// TestTerminal types into a shell, which gets every byte as it is, resizes it, and ends
// it. The log of writes says who opened which task.
func TestTerminal(t *testing.T) {
	w := newTestWeb(t)
	server := w.serveTerminals()
	c := w.openTerminal(server, w.logIn("ann"))
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(255 - i) // the line feed is not the last one
	}
	c.typeIn(all)
	var got []byte
	for len(got) < len(all) {
		got = append(got, c.read(len(all)-len(got))...)
	}
	if !bytes.Equal(got, all) {
		t.Errorf("got %q", got)
	}
	c.report(`{"rows":50,"columns":132}`)
	if got := c.read(8); string(got) != "50x132\n" {
		t.Errorf("the new size: %q", got)
	}
	c.typeIn([]byte("exit"))
	if c.next() != nil || !c.end.Ended || c.end.Code != 7 || c.end.Error != "" || c.taken != len(all)+len("exit") {
		t.Errorf("the end: %+v, %d bytes taken", c.end, c.taken)
	}
	c.next() // the close of the connection, which the daemon waits for
	w.await("the audit lines", 20*time.Second, func() bool {
		return strings.Contains(w.audit.String(), `"msg":"terminal ended"`)
	})
	for _, want := range []string{`"msg":"terminal opened"`, `"user":"ann"`, `"from":"127.0.0.1"`, `"task":"1.n1"`,
		`"way":"link"`} {
		if !strings.Contains(w.audit.String(), want) {
			t.Errorf("the log of writes has no %s: %s", want, w.audit)
		}
	}
}

// TestW18ForeignWebSockets tries handshakes that no page of this server makes, and
// tickets that are not for them.
func TestW18ForeignWebSockets(t *testing.T) {
	w := newTestWeb(t)
	server := w.serveTerminals()
	ann, second, bob := w.logIn("ann"), w.logIn("ann"), w.logIn("bob")
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for name, header := range map[string][]string{
		"another site":       {"Origin", "https://evil.example"},
		"a similar name":     {"Origin", "http://127.0.0.1.evil.example" + port},
		"another port":       {"Origin", "http://127.0.0.1:1"},
		"another scheme":     {"Origin", "https://127.0.0.1" + port},
		"an opaque origin":   {"Origin", "null"},
		"no origin":          {"Origin", ""},
		"a cross-site fetch": {"Sec-Fetch-Site", "cross-site"},
		"a same-site fetch":  {"Sec-Fetch-Site", "same-site"},
	} {
		w.forgetLimits()
		if c, code := w.dial(server, ann, "1.n1", w.ticket(ann, "1.n1"), header...); c != nil || code != 403 {
			t.Errorf("%s: got %d", name, code)
		}
	}
	w.forgetLimits()
	for name, ticket := range map[string]string{"none": "", "a guess": strings.Repeat("A", 43),
		"of another session": w.ticket(second, "1.n1"), "of another user": w.ticket(bob, "1.n1"),
		"of another task": w.ticket(ann, "2.n1"), "of a task of the job": w.ticket(ann, "1[1].n1")} {
		w.forgetLimits()
		if c, code := w.dial(server, ann, "1.n1", ticket); c != nil || code != 403 {
			t.Errorf("a ticket, %s: got %d", name, code)
		}
	}
	w.forgetLimits()
	once := w.ticket(ann, "1.n1")
	if c, code := w.dial(server, ann, "1.n1", once); c == nil {
		t.Errorf("the first use: got %d", code)
	}
	if c, code := w.dial(server, ann, "1.n1", once); c != nil || code != 403 {
		t.Errorf("the second use: got %d", code)
	}
	if c, code := w.dial(server, w.apiToken("ann", session.Scopes()...), "1.n1", w.ticket(ann, "1.n1")); c != nil ||
		code != 403 {
		t.Errorf("an API token: got %d", code)
	}
	if w.schedd.shells.opened.Load() > 1 {
		t.Errorf("%d shells were opened", w.schedd.shells.opened.Load())
	}
	c, _ := w.dial(server, bob, "1.n1", w.ticket(bob, "1.n1"))
	if c.next() != nil || !strings.Contains(c.end.Error, "only its owner may enter it") {
		t.Errorf("bob in a task of ann's: %+v", c.end)
	}
	for _, text := range []string{w.audit.String(), w.logged.String()} {
		if strings.Contains(text, once) {
			t.Errorf("a ticket is in a log: %s", text)
		}
	}
}

// TestTerminalFlow checks that a browser that does not read stops the shell. Nothing is
// lost when it goes on. Reports that cannot be true end the terminal.
func TestTerminalFlow(t *testing.T) {
	w := newTestWeb(t)
	server := w.serveTerminals()
	cookie := w.logIn("ann")
	c := w.openTerminal(server, cookie)
	c.typeIn([]byte("flood"))
	written := &w.schedd.shells.written
	stalled, since := int64(-1), time.Now()
	w.await("a stop", 20*time.Second, func() bool {
		if n := written.Load(); n != stalled {
			stalled, since = n, time.Now()
		}
		return stalled > 0 && time.Since(since) > time.Second
	})
	if stalled > 1<<20 {
		t.Errorf("the shell wrote %d bytes that nobody has shown", stalled)
	}
	c.report(`{"rows":40,"columns":100}`) // it is read all the same
	got := 0
	for got < floodSize {
		data := c.next()
		if data == nil {
			t.Fatalf("after %d bytes: %+v", got, c.end)
		}
		got += len(data)
		c.report(fmt.Sprintf(`{"shown":%d}`, len(data)))
	}
	if line := c.read(8); string(line) != "40x100\n" {
		t.Errorf("got %q", line)
	}
	for name, bad := range map[string]string{"more shown than sent": `{"shown":1000000}`, "less than none": `{"shown":-1}`,
		"a size of 0": `{"rows":0,"columns":5}`, "a huge size": `{"rows":5000,"columns":5000}`, "no JSON": `{`} {
		w.forgetLimits()
		c := w.openTerminal(server, cookie)
		if c.report(bad); c.next() != nil || !strings.Contains(c.end.Error, "protocol") {
			t.Errorf("%s: %+v", name, c.end)
		}
	}
}

// TestTerminalEnds checks that a terminal ends with its session, and 5 seconds after the
// revocation of its login.
func TestTerminalEnds(t *testing.T) {
	w := newTestWeb(t)
	server := w.serveTerminals()
	shells := &w.schedd.shells
	revoke := func(*http.Cookie) {
		isAnn := func(a login.HostAccount) bool { return a.User == "ann" }
		for _, l := range w.schedd.logins.List(isAnn) {
			if _, err := w.schedd.logins.Revoke(l.ID(), isAnn, time.Now()); err != nil {
				t.Error(err)
			}
		}
	}
	for name, end := range map[string]func(cookie *http.Cookie){
		"logout":     func(cookie *http.Cookie) { w.do(as(w.request("DELETE", "/v1/session", ""), cookie)) },
		"revocation": revoke,
		// the schedd closes the connection on which it is asked, too
		"revocation, with lost answers": func(c *http.Cookie) { w.schedd.lost.Store(4); revoke(c) },
		"the browser":                   nil,
	} {
		cookie := w.logIn("ann")
		before := shells.over.Load()
		c := w.openTerminal(server, cookie)
		began := time.Now()
		if end == nil {
			c.conn.CloseNow()
		} else if end(cookie); c.next() != nil || !strings.Contains(c.end.Error, "log in again") &&
			!strings.Contains(c.end.Cure, "log in again") {
			t.Errorf("%s: %+v", name, c.end)
		}
		w.await(name+": the end of the shell", 5*time.Second-time.Since(began),
			func() bool { return shells.over.Load() > before })
	}
}

// TestTerminalBounds checks that a user has 8 terminals at a time.
func TestTerminalBounds(t *testing.T) {
	w := newTestWeb(t)
	server := w.serveTerminals()
	cookie := w.logIn("ann")
	for range 8 {
		w.openTerminal(server, cookie)
	}
	if c, code := w.dial(server, cookie, "1.n1", w.ticket(cookie, "1.n1")); c != nil ||
		code != http.StatusTooManyRequests {
		t.Errorf("the 9th: %d", code)
	}
	if answer := w.do(as(w.request("GET", "/v1/tasks/1.n1/terminal", ""), cookie)); answer.Code !=
		http.StatusTooManyRequests {
		t.Errorf("without an upgrade: %d", answer.Code)
	}
}

// TestInlineStyles checks that the page of the terminal alone permits styles in its text.
func TestInlineStyles(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for _, r := range w.server.table.Routes() {
		for _, pattern := range []string{r.Page, r.Pattern} {
			if pattern == "" || r.Method != "GET" {
				continue
			}
			w.forgetLimits()
			answer := w.do(as(w.request("GET", examplePath(pattern), ""), cookie))
			policy := answer.Header().Get("Content-Security-Policy")
			isTerminal := pattern == "/tasks/{id}/terminal"
			if strings.Contains(policy, "unsafe-inline") != isTerminal || strings.Contains(policy, "unsafe-eval") ||
				!strings.Contains(policy, "script-src 'self';") && !strings.Contains(policy, "sandbox") {
				t.Errorf("%s: %s", pattern, policy)
			}
		}
	}
}
