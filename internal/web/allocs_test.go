package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// TestAllocs checks the list of allocs, in JSON and as a page, and the page of a job.
func TestAllocs(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	get := func(path string) string { return w.do(as(w.request("GET", path, ""), cookie)).Body.String() }
	var list view.AllocList
	if err := json.Unmarshal([]byte(get("/v1/allocs")), &list); err != nil || len(list.Allocs) != 0 {
		t.Errorf("a job that is no alloc set is listed: %v, %+v", err, list)
	}
	w.schedd.inside = &wire.AllocStatus{Open: 1, Tasks: 3, Inside: &wire.Resources{MilliCpu: 1500, Memory: 1 << 30},
		Jobs: []string{"13.n1"}, MoreJobs: 2, Users: []string{"bob"}}
	if err := json.Unmarshal([]byte(get("/v1/allocs?all=1")), &list); err != nil || len(list.Allocs) != 1 ||
		list.Allocs[0].Alloc.Tasks != 3 || list.Allocs[0].Alloc.Inside.CPUs != 1.5 || len(list.Unreachable) != 1 {
		t.Errorf("got %v, %+v", err, list)
	}
	for path, all := range map[string][]string{
		"/allocs":    {`href="/tasks/1.n1"`, `href="/jobs/13.n1"`, "and 2 more", "1.5 of 0", "n2"},
		"/jobs/1.n1": {"<h2>Inside</h2>", `href="/jobs/13.n1"`, "bob", `href="/allocs?set=1.n1"`},
	} {
		page := get(path)
		for _, want := range all {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %s: %s", path, want, page)
			}
		}
	}
	for _, set := range []string{"x", "12", "12[3]x.n1", strings.Repeat("1", 300) + ".n1", "@web"} {
		if answer := w.do(as(w.request("GET", "/v1/allocs?set="+set, ""), cookie)); answer.Code != 400 {
			t.Errorf("set %s: got %d", set, answer.Code)
		}
	}
}
