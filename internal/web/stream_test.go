package web

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// eventReader reads the events of one stream.
type eventReader struct {
	*testing.T
	lines  *bufio.Scanner
	lastID string
	close  func()
}

// openStream opens a stream of job 1.
func (w *testWeb) openStream(server *httptest.Server, cookie *http.Cookie, after string) *eventReader {
	w.Helper()
	q, err := http.NewRequestWithContext(w.Context(), "GET", server.URL+"/v1/stream?topics=job/1.n1", nil)
	if err != nil {
		w.Fatal(err)
	}
	q.AddCookie(cookie)
	if after != "" {
		q.Header.Set("Last-Event-ID", after)
	}
	answer, err := server.Client().Do(q)
	if err != nil || answer.StatusCode != http.StatusOK ||
		!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		w.Fatalf("%v, %+v", err, answer)
	}
	return &eventReader{T: w.T, lines: bufio.NewScanner(answer.Body), close: func() { answer.Body.Close() }}
}

// next returns the name and data of the next event; empty at the end of the stream.
func (r *eventReader) next() (name, data string) {
	r.Helper()
	for r.lines.Scan() {
		switch key, value, _ := strings.Cut(r.lines.Text(), ": "); key {
		case "id":
			r.lastID = value
		case "event":
			name = value
		case "data":
			return name, value
		}
	}
	return "", ""
}

// awaitState reads until the job has a state.
func (r *eventReader) awaitState(state string) {
	r.Helper()
	for {
		name, data := r.next()
		if name != "job" {
			r.Fatalf("got %q %s before %s", name, data, state)
		}
		if strings.Contains(data, `"state":"`+state+`"`) {
			return
		}
	}
}

// change tells whoever watches the job of a new state.
func (w *testWeb) change(state string) {
	w.Helper()
	w.schedd.state.Store(&state)
	select {
	case w.schedd.news <- state:
	case <-time.After(time.Minute):
		w.Fatal("nobody watches the job")
	}
}

// TestStream follows a job, loses the connection, and goes on behind the last event. A
// stream of another start of the daemon has to read anew, and logout ends all.
func TestStream(t *testing.T) {
	w := newTestWeb(t)
	server := httptest.NewServer(w.server.table)
	t.Cleanup(server.Close)
	cookie := w.logIn("ann")
	first := w.openStream(server, cookie, "")
	first.awaitState("held")
	w.change("running")
	first.awaitState("running")
	second := w.openStream(server, cookie, "")
	second.awaitState("running")
	seen := first.lastID
	first.close()
	w.change("exiting")
	second.awaitState("exiting")
	again := w.openStream(server, cookie, seen)
	again.awaitState("exiting")
	if name, _ := w.openStream(server, cookie, "1f.7").next(); name != "resync" {
		t.Errorf("an event of another start: got %q", name)
	}
	w.do(as(w.request("DELETE", "/v1/session", ""), cookie))
	for {
		if name, _ := second.next(); name == "" {
			break
		}
	}
}

// TestStreamBounds checks that a user has 8 streams, and that topics are those of jobs.
func TestStreamBounds(t *testing.T) {
	w := newTestWeb(t)
	server := httptest.NewServer(w.server.table)
	t.Cleanup(server.Close)
	cookie := w.logIn("ann")
	for range 8 {
		defer w.openStream(server, cookie, "").close()
	}
	q, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/v1/stream?topics=job/1.n1", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.AddCookie(cookie)
	answer, err := server.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("the 9th: %+v", answer)
	}
	answer.Body.Close()
	for _, topics := range []string{"", "x", "job/", "job/1", "job/1[2].n1", "job/1.n1,", "job/../1.n1",
		strings.Repeat("job/1.n1,", 300) + "job/1.n1"} {
		w.forgetLimits()
		if answer := w.do(as(w.request("GET", "/v1/stream?topics="+topics, ""), cookie)); answer.Code < 400 {
			t.Errorf("%.20s: got %d", topics, answer.Code)
		}
	}
}
