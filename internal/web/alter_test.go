package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// TestAlter checks that the verb alter makes the change of qalter -l. It is recorded, and
// what is no resource is refused before.
func TestAlter(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.ad = `[JobName = "sim"; RequestCpus = 1; RequestMemory = 4096; Alterations = 3]`
	cookie := w.logIn("ann")
	answer := w.do(as(w.request("POST", "/v1/acts",
		`{"verb":"alter","select":["1.n1"],"resources":"mem=1gb,walltime=1:00:00","expect":1}`), cookie))
	var done view.ActResults
	if err := json.Unmarshal(answer.Body.Bytes(), &done); err != nil || done.Failed != 0 || done.Changed != 1 {
		t.Fatalf("got %d: %s", answer.Code, answer.Body)
	}
	if len(w.schedd.acts) != 1 || w.schedd.acts[0].GetVerb() != wire.ActRequest_ALTER {
		t.Fatalf("the schedd is asked for %v", w.schedd.acts)
	}
	m := w.schedd.acts[0].GetAlteration()
	changes, err := classad.Parse(m.GetChanges())
	if err != nil {
		t.Fatal(err)
	}
	memory, _ := changes.Int("RequestMemory")
	walltime, _ := changes.Int("Walltime")
	if memory != 1024 || walltime != 3600 || m.GetBasis() != 3 {
		t.Errorf("the change is %v", m)
	}
	if _, ok := changes.Lookup("RequestCpus"); ok {
		t.Errorf("the change is about more than was asked for: %v", changes)
	}
	if !strings.Contains(w.audit.String(), `"resources":"mem=1gb,walltime=1:00:00"`) {
		t.Errorf("the audit log says %s", w.audit.String())
	}
	for body, want := range map[string]string{
		`{"verb":"alter","select":["1.n1"],"expect":1}`:                       "alter needs them",
		`{"verb":"hold","select":["1.n1"],"resources":"mem=1gb","expect":1}`:  "nothing else does",
		`{"verb":"alter","select":["1.n1"],"resources":"mem=x","expect":1}`:   "Resource_List.mem",
		`{"verb":"alter","select":["1.n1"],"resources":"mem=1gb","expect":2}`: "1 jobs match",
	} {
		if answer := w.do(as(w.request("POST", "/v1/acts", body), cookie)); answer.Code/100 != 4 ||
			!strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s: got %d: %s", body, answer.Code, answer.Body)
		}
	}
	if len(w.schedd.acts) != 1 {
		t.Errorf("refused alterations reached the schedd: %v", w.schedd.acts[1:])
	}
}
