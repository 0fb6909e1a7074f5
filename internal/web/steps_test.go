package web

import (
	"strings"
	"testing"

	wire "github.com/roost-batch/roost/internal/wire/scheddapi"
)

// TestSteps checks that the page of a job has its steps while they run, and how they
// ended.
func TestSteps(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	step := &wire.StepRecord{Number: 3, Name: "ring", Tasks: 4, Cpus: 8, NodeList: "n[1-2]", Began: 1e18,
		MaxRss: 1 << 30, UserCpu: 61e9}
	for _, c := range []struct {
		ended, code int64
		end, want   string
		isOver      bool
	}{
		{want: `<span class="state running">running</span>`},
		{ended: 2e18, want: `<span class="state completed">completed</span>`},
		{ended: 2e18, code: 7, want: `<span class="state failed">failed</span> exit code 7`},
		{ended: 2e18, code: 7, want: `<span class="state failed">failed</span> exit code 7`, isOver: true},
		{ended: 2e18, end: "cancelled", want: `<span class="state cancelled">cancelled</span>`},
	} {
		step.Ended, step.Code, step.End = c.ended, int32(c.code), c.end
		w.schedd.edit = func(s *wire.JobStatus) {
			s.State, s.Steps, s.Exit = "running", []*wire.StepRecord{step}, nil
			if c.isOver {
				s.State, s.Exit, s.Steps = "completed", &wire.ExitStatus{Steps: s.Steps}, nil
			}
		}
		page := w.do(as(w.request("GET", "/jobs/1.n1", ""), cookie)).Body.String()
		for _, want := range []string{c.want, `<th scope="row">3</th><td class="text">ring</td>`, "n[1-2]", "1GiB", "1m01s"} {
			if !strings.Contains(page, want) {
				t.Errorf("%+v: the page lacks %q: %s", c, want, page)
			}
		}
	}
}
