package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// TestUpdateActs checks that words about updates reach the schedd as those of roost
// update do. Others are refused before.
func TestUpdateActs(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for body, want := range map[string]string{
		`{"verb":"update","select":["1.n1"],"update":"undo","expect":1}`: "undo",
		`{"verb":"restart","select":["1.n1"],"expect":1}`:                "",
	} {
		answer := w.do(as(w.request("POST", "/v1/acts", body), cookie))
		var done view.ActResults
		if err := json.Unmarshal(answer.Body.Bytes(), &done); err != nil || done.Failed != 0 || done.Changed != 1 {
			t.Fatalf("%s: got %d: %s", body, answer.Code, answer.Body)
		}
		last := w.schedd.acts[len(w.schedd.acts)-1]
		if last.GetVerb() != wire.ActRequest_UPDATE || last.GetUpdate() == nil ||
			last.GetUpdate().GetCommand() != want || last.GetUpdate().GetAd() != "" {
			t.Errorf("%s: the schedd is asked for %v", body, last)
		}
	}
	if !strings.Contains(w.audit.String(), `"update":"undo"`) {
		t.Errorf("the audit log says %s", w.audit.String())
	}
	made := len(w.schedd.acts)
	for body, want := range map[string]string{
		`{"verb":"update","select":["1.n1"],"expect":1}`:                  "needs one of pause",
		`{"verb":"update","select":["1.n1"],"update":"x","expect":1}`:     "needs one of pause",
		`{"verb":"hold","select":["1.n1"],"update":"undo","expect":1}`:    "only the verb update",
		`{"verb":"restart","select":["1.n1"],"update":"undo","expect":1}`: "only the verb update",
	} {
		if answer := w.do(as(w.request("POST", "/v1/acts", body), cookie)); answer.Code/100 != 4 ||
			!strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s: got %d: %s", body, answer.Code, answer.Body)
		}
	}
	if len(w.schedd.acts) != made {
		t.Errorf("refused words reached the schedd: %v", w.schedd.acts[made:])
	}
}

// TestNames checks the list of names, in JSON and as a page.
func TestNames(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "hub"
	cookie := w.logIn("ann")
	answer := w.do(as(w.request("GET", "/v1/names?name=hub", ""), cookie))
	var list view.NameList
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Endpoints) != 1 ||
		list.Endpoints[0].Ports["http"] != 20001 || list.Endpoints[0].Name != "hub" || list.Truncated {
		t.Errorf("got %d: %s", answer.Code, answer.Body)
	}
	page := w.do(as(w.request("GET", "/names", ""), cookie)).Body.String()
	for _, want := range []string{`href="/jobs/2.n1"`, "192.0.2.7:20001", "ready"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	long := w.request("GET", "/v1/names?owner="+strings.Repeat("x", 300), "")
	if answer := w.do(as(long, cookie)); answer.Code != 400 {
		t.Errorf("a long owner: got %d", answer.Code)
	}
}

// TestLostTask checks that the list of jobs says so when the machine of a service's task
// does not answer.
func TestLostTask(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	for state, want := range map[string]bool{"lost": true, "ready": false} {
		w.schedd.rows = []*wire.JobStatus{{Id: "1.n1", Name: "hub", Owner: "ann", State: "running", Node: "n1",
			Tasks: 1, Submitted: 1e18, Service: &wire.ServiceHealth{Wanted: 1, State: state}}}
		page := w.do(as(w.request("GET", "/jobs", ""), cookie)).Body.String()
		if strings.Contains(page, `<span class="state lost">lost</span>`) != want {
			t.Errorf("a task that is %s: %s", state, page)
		}
	}
}
