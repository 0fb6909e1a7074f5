package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
)

// TestLogSearch finds lines of an output by a text, piece by piece.
func TestLogSearch(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	search := func(query string) (s view.LogSearch) {
		w.forgetLimits()
		w.get("/v1/tasks/1.n1/search/out?"+query, &s, cookie)
		return s
	}
	w.schedd.text = "first\nan Error here\n\x1b[31merror\x1b[0m \x1b]0;title\x07 (2)\n" +
		strings.Repeat("y", 5000) + "error"
	s := search("q=error")
	if len(s.Lines) != 3 || s.Lines[0].Line != 2 || s.Lines[0].Offset != 6 || s.Lines[0].Text != "an Error here" ||
		s.Next != 0 || s.Bytes != int64(len(w.schedd.text)) {
		t.Errorf("got %+v", s)
	}
	if strings.Contains(s.Lines[1].Text, "\x1b]") || !strings.Contains(s.Lines[1].Text, "\x1b[31m") ||
		len(s.Lines[2].Text) > 500 || !strings.HasSuffix(s.Lines[2].Text, "error") {
		t.Errorf("got %+v", s.Lines)
	}
	if s = search("q=error&case=1"); len(s.Lines) != 2 || s.Lines[0].Line != 3 {
		t.Errorf("with case, got %+v", s.Lines)
	}
	if s = search("q=" + url.QueryEscape("(2)")); len(s.Lines) != 1 { // it is no pattern
		t.Errorf("got %+v", s.Lines)
	}
	w.schedd.text = strings.Repeat(strings.Repeat("z", 999)+"\n", 5000)
	if s = search("q=a"); s.Bytes != 4<<20/1000*1000 || s.Next != s.Bytes || s.NextLine != s.Bytes/1000+1 {
		t.Errorf("the first piece: %+v", s)
	}
	w.schedd.text = strings.Repeat("z\n", 1000)
	if s = search("q=z&offset=0&line=7"); len(s.Lines) != 200 || s.Lines[0].Line != 7 || s.Next != 400 ||
		s.NextLine != 207 {
		t.Errorf("200 hits: next %d, line %d", s.Next, s.NextLine)
	}
	page := func(path string) string {
		w.forgetLimits()
		q := as(w.request("GET", path, ""), cookie)
		q.Header.Set("Accept", "text/html")
		return w.do(q).Body.String()
	}
	if text := page("/tasks/1.n1/search/out?q=z&case=1"); !strings.Contains(text, `href="/tasks/1.n1/log/out?offset=2"`) ||
		!strings.Contains(text, `offset=400&amp;line=201`) {
		t.Errorf("the page lacks links: %.3000s", text)
	}
	if text := page("/tasks/1.n1/log/out"); !strings.Contains(text, `action="/tasks/1.n1/search/out"`) {
		t.Errorf("the page of the output has no form: %s", text)
	}
	for path, want := range map[string]int{"out?q=": 400, "out": 400, "log?q=x": 404, "out?q=x&line=0": 400,
		"out?q=" + strings.Repeat("x", 201): 400, "out?q=x&offset=-1": 400} {
		w.forgetLimits()
		if answer := w.do(as(w.request("GET", "/v1/tasks/1.n1/search/"+path, ""), cookie)); answer.Code != want {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	w.forgetLimits()
	if answer := w.do(as(w.request("GET", "/v1/tasks/1.n1/search/out?q=x", ""), w.logIn("bob"))); answer.Code !=
		http.StatusForbidden {
		t.Errorf("another user's search: %d %s", answer.Code, answer.Body)
	}
}
