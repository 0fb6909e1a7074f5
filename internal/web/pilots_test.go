package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
)

// TestPilotPages checks the lists of pilots, and the page of one.
func TestPilotPages(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.ads = []string{`[Name = "n1"; State = "Unclaimed"; TotalCpus = 4; Cpus = 4]`,
		`[Name = "p1"; State = "Claimed"; TotalCpus = 4; Cpus = 1; NumRunning = 3; PilotOwner = "ann"; PilotProvider = "uni";
PilotKey = "rpabc"; PilotHost = "c17"; PilotUntil = 1900000000]`,
		`[Name = "p2"; State = "Unclaimed"; TotalCpus = 8; Cpus = 8; PilotOwner = "ann@n1"; PilotProvider = "uni";
PilotUntil = 1800000000]`,
		`[Name = "p3"; State = "Unclaimed"; TotalCpus = 2; Cpus = 2; PilotOwner = "bob"; PilotProvider = "<script>x</script>";
PilotKey = "\"onmouseover=x"; PilotHost = "<b>"; PilotUntil = 99999999999999]`}
	cookie := w.logIn("ann")
	get := func(path string) string { return w.do(as(w.request("GET", path, ""), cookie)).Body.String() }
	list := func(path string) (l view.PilotList) {
		t.Helper()
		if err := json.Unmarshal([]byte(get(path)), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	own := list("/v1/pilots")
	if own.Total != 2 || len(own.Pilots) != 2 || len(own.Groups) != 2 || own.Groups[0].Cpus.Free != 1 ||
		own.Groups[0].Claimed != 1 || own.Groups[0].Running != 3 || own.Groups[1].Next != "2027-01-15T08:00:00Z" {
		t.Errorf("own: %+v", own)
	}
	if all := list("/v1/pilots?all=1"); all.Total != 3 || len(all.Groups) != 3 {
		t.Errorf("all: %+v", all)
	}
	if l := list("/v1/pilots?all=1&limit=1"); l.Total != 3 || len(l.Pilots) != 1 || l.Next != "p1" {
		t.Errorf("a part: %+v", l)
	}
	if l := list("/v1/pilots?all=1&after=p1"); l.Total != 3 || len(l.Pilots) != 2 || l.Next != "" {
		t.Errorf("the next part: %+v", l)
	}
	for query, want := range map[string]int{"owner=bob": 1, "state=claimed": 1, "provider=uni": 2, "owner=eve": 0,
		"owner=bob&provider=uni": 0, "owner=ann@n1": 1} {
		if l := list("/v1/pilots?" + query); l.Total != want {
			t.Errorf("%s: %d, want %d", query, l.Total, want)
		}
	}
	for path, wants := range map[string][]string{
		"/pilots": {`href="/nodes/p1"`, "rpabc", "c17", "3 of 4"},
		"/pilots?all=1": {"&lt;script&gt;x&lt;/script&gt;", `&#34;onmouseover=x`, "&lt;b&gt;",
			`<span class="muted">not known</span>`},
	} {
		page := get(path)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %s: %s", path, want, page)
			}
		}
		if strings.Contains(page, "<script>x") || strings.Contains(page, `"onmouseover`) {
			t.Errorf("%s: not escaped: %s", path, page)
		}
	}
	w.schedd.ads = w.schedd.ads[1:2]
	const want = "A pilot of ann from the provider uni, on its machine c17, in the allocation rpabc"
	if page := get("/nodes/p1"); !strings.Contains(page, want) {
		t.Errorf("the page of p1 lacks %q: %s", want, page)
	}
	if answer := w.do(w.request("GET", "/v1/pilots?all=1", "")); answer.Code != 401 {
		t.Errorf("without a login: %d", answer.Code)
	}
}
