package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
)

// TestPeersPage checks what is shown of other pools, and that their names are escaped.
func TestPeersPage(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	get := func(path string) string { return w.do(as(w.request("GET", path, ""), cookie)).Body.String() }
	for _, want := range []string{"No machine of this pool", "No user of another pool", "No task of this pool"} {
		if page := get("/peers"); !strings.Contains(page, want) {
			t.Errorf("a pool without others lacks %q: %s", want, page)
		}
	}
	w = newTestWeb(t)
	cookie = w.logIn("ann")
	w.schedd.ads = []string{`[Name = "n1"; State = "Unclaimed"; TotalCpus = 4; Cpus = 4]`,
		`[Name = "n2"; State = "Unclaimed"; TotalCpus = 8; Cpus = 6; AcceptsGuests = true]`,
		`[Name = "n3"; State = "Unclaimed"; TotalCpus = 8; Cpus = 8; AcceptsGuests = "yes"]`}
	w.schedd.cell = map[string]string{"shares": `{"submitters": [
{"name": "ann", "user": "ann", "cores": 1, "core_hours": 7, "cores_elsewhere": 3, "core_hours_elsewhere": 2.5},
{"name": "bob", "user": "bob", "cores": 1, "core_hours": 7},
{"name": "peer:chem.ann@chem", "user": "ann@chem", "group": "peer:chem", "cores": 2, "core_hours": 10},
{"name": "peer:chem.<script>x</script>@chem", "user": "<script>x</script>@chem", "group": "peer:chem", "cores": 1,
"core_hours": 1.5, "waits": true},
{"name": "peer:bio.eve@bio", "user": "eve@bio", "group": "peer:bio", "core_hours": 0.5}]}`,
		"group": `[{"name": "peer:chem", "object": {"group": "peer:chem", "cores": 64}},
{"name": "physics", "object": {"group": "physics", "cores": 8}}]`}
	var f view.Flock
	if err := json.Unmarshal([]byte(get("/v1/peers")), &f); err != nil {
		t.Fatal(err)
	}
	if f.Machines != 1 || f.Cores != 8 || f.FreeCores != 6 || len(f.Elsewhere) != 1 || f.Elsewhere[0].Name != "ann" ||
		f.Elsewhere[0].CoreHours != 2.5 || f.Elsewhere[0].Cores != 3 {
		t.Errorf("machines and users elsewhere: %+v", f)
	}
	if len(f.Guests) != 2 || f.Guests[0].Pool != "bio" || f.Guests[0].Bound != nil || f.Guests[1].Cores != 3 ||
		f.Guests[1].CoreHours != 11.5 || !f.Guests[1].IsWaiting || len(f.Guests[1].Users) != 2 ||
		f.Guests[1].Bound == nil || *f.Guests[1].Bound != 64 {
		t.Errorf("guests: %+v", f.Guests)
	}
	page := get("/peers")
	for _, want := range []string{"ann@chem", "64 at most", "eve@bio", "&lt;script&gt;x&lt;/script&gt;@chem", "2.5"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "<script>x") {
		t.Errorf("not escaped: %s", page)
	}
	if answer := w.do(w.request("GET", "/v1/peers", "")); answer.Code != 401 {
		t.Errorf("without a login: %d", answer.Code)
	}
}
