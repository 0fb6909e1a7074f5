package web

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSortedLists sorts the lists of jobs, machines and users by columns, and chooses
// columns. The page has a link in each heading, and the choice is in the address alone.
func TestSortedLists(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for i, name := range []string{"beta", "alpha", "gamma", "alpha"} {
		w.schedd.rows = append(w.schedd.rows, &wire.JobStatus{Id: fmt.Sprintf("%d.n1", i+9), Name: name, Owner: "ann",
			Band: "batch", State: "idle", Tasks: uint32(i + 1), Submitted: 1e18})
	}
	w.schedd.ads = []string{`[Name = "n1"; LoadAvg = 2.0]`, `[Name = "n2"; LoadAvg = 0.5]`,
		`[Name = "n10"; LoadAvg = 1.0]`}
	w.schedd.cell = map[string]string{"shares": `{"submitters": [{"name":"ann","user":"ann","cores":1,"floor":2.5},
		{"name":"bob","user":"bob","cores":7}]}`}
	jobs := func(query string) (ids []string, next string) {
		w.forgetLimits()
		var l view.JobList
		w.get("/v1/jobs?limit=3&"+query, &l, cookie)
		for _, j := range l.Jobs {
			ids = append(ids, j.ID)
		}
		return ids, l.Next
	}
	ids, next := jobs("sort=name")
	if want := []string{"10.n1", "12.n1", "9.n1"}; !slices.Equal(ids, want) || next == "" {
		t.Errorf("jobs by name are %v, then %q, want %v", ids, next, want)
	}
	if ids, next = jobs("sort=name&after=" + next); !slices.Equal(ids, []string{"11.n1"}) || next != "" {
		t.Errorf("the next part is %v, then %q", ids, next)
	}
	if ids, _ = jobs("sort=-tasks"); !slices.Equal(ids, []string{"12.n1", "11.n1", "10.n1"}) {
		t.Errorf("jobs by tasks, descending, are %v", ids)
	}
	var nodes view.NodeList
	w.get("/v1/nodes?sort=load", &nodes, cookie)
	if len(nodes.Nodes) != 3 || nodes.Nodes[0].Name != "n2" || nodes.Nodes[2].Name != "n1" || nodes.Total != 3 {
		t.Errorf("nodes by load are %+v", nodes)
	}
	var shares view.ShareList
	w.get("/v1/shares?sort=-cores", &shares, cookie)
	if len(shares.Submitters) != 2 || shares.Submitters[0].Name != "bob" {
		t.Errorf("submitters by cores are %+v", shares.Submitters)
	}
	for path, want := range map[string]string{
		"/jobs?sort=-name&columns=band&columns=name": "Job Name↓name Band",
		"/nodes?columns=rack,load":                   "Node Load Rack",
		"/shares?columns=floor&sort=user":            "Submitter↑-user Floor",
	} {
		w.forgetLimits()
		q := as(w.request("GET", path, ""), cookie)
		q.Header.Set("Accept", "text/html")
		text := w.do(q).Body.String()
		var heads []string
		for _, m := range regexp.MustCompile(`<th scope="col"(.*?)><a href="(.*?)">(.*?)</a></th>`).
			FindAllStringSubmatch(text, -1) {
			head := m[3]
			if strings.Contains(m[1], "aria-sort") {
				link := regexp.MustCompile(`sort=([^&"]*)`).FindStringSubmatch(m[2])
				head += map[bool]string{true: "↓", false: "↑"}[strings.Contains(m[1], "descending")] + link[1]
			}
			heads = append(heads, head)
		}
		if got := strings.Join(heads, " "); got != want {
			t.Errorf("%s has the headings %q, want %q", path, got, want)
		}
		if path == "/shares?columns=floor&sort=user" && !strings.Contains(text, "2.5") {
			t.Errorf("the floor of ann is not shown: %s", text)
		}
		if strings.Contains(path, "sort=") != strings.Contains(text, `<input type="hidden" name="sort"`) {
			t.Errorf("%s: the form loses the order", path)
		}
	}
	for _, path := range []string{"/v1/jobs?sort=secret", "/v1/nodes?columns=Name,x", "/v1/shares?sort=--user",
		"/v1/jobs?sort=name&after=x", "/v1/nodes?sort=load&after=n1"} {
		w.forgetLimits()
		if answer := w.do(as(w.request("GET", path, ""), cookie)); answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	limited := 0
	w.forgetLimits()
	for range 30 { // a sorted list reads all jobs
		if w.do(as(w.request("GET", "/v1/jobs?sort=name", ""), cookie)).Code == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 10 {
		t.Errorf("%d of 30 sorted lists at once were refused", limited)
	}
}
