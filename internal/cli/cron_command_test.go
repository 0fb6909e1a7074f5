package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestCronCommand checks what is listed of schedules, and in which order.
func TestCronCommand(t *testing.T) {
	job := func(id, name, state, ad string) *wire.JobStatus {
		return &wire.JobStatus{Id: id, Name: name, Owner: "ann", State: state, Tasks: 1, Ad: ad,
			Counts: clitest.TaskCounts(state, 1)}
	}
	f := &clitest.FakeSchedd{
		Jobs: []*wire.JobStatus{
			job("7.pool", "monthly", "blocked", `[ JobName = "monthly"; Schedule = [ Cron = "0 3 1 * *"; Zone = "UTC" ] ]`),
			job("6.pool", "plain", "idle", `[ JobName = "plain" ]`),
			job("5.pool", "hourly", "blocked", `[ JobName = "hourly"; Schedule = [ Cron = "@hourly"; Zone = "UTC" ] ]`),
			job("4.pool", "unreadable", "blocked", `[ Schedule = [ Cron = "0 0 30 2 *"; Zone = "UTC" ] ]`),
			job("3.pool", "stopped", "held", `[ JobName = "stopped"; Schedule = [ Cron = "@yearly"; Zone = "UTC" ] ]`),
		},
		JobEvents: []*wire.JobEvent{
			{Time: clitest.TimeBefore(3 * time.Hour), What: "submitted"},
			{Time: clitest.TimeBefore(2 * time.Hour), What: "ticked", Text: "job 8 is a run"},
			{Time: clitest.TimeBefore(time.Hour), What: "skipped", Text: "job 8 has not ended"},
			{Time: clitest.TimeBefore(time.Minute), What: "ticked", Text: "job 9 is a run"},
		},
	}
	dir := f.Serve(t)
	for _, test := range []struct {
		line string
		want []string
	}{
		{"roost cron --all", []string{
			"ID      NAME     OWNER  SCHEDULE   NEXT                  RUNS  SKIPPED  LAST",
			"5.pool  hourly   ann    @hourly    2026-03-01T13:00:00Z     2        1  job 9 is a run",
			"7.pool  monthly  ann    0 3 1 * *  2026-04-01T03:00:00Z     2        1  job 9 is a run",
			"3.pool  stopped  ann    @yearly    held                     2        1  job 9 is a run"}},
		{"roost cron --json 5.pool", []string{`{"job":{"id":"5.pool"`, `"runs":2`, `"skipped":1`,
			`"next":["2026-03-01T13:00:00Z","2026-03-01T14:00:00Z",`, `"what":"ticked","text":"job 9 is a run"`}},
		{"roost cron --json --from 2027-05-01T00:00:00Z 7.pool", []string{`"next":["2027-05-01T03:00:00Z","2027-06-01T03:00:00Z",`}},
		{"roost cron 6.pool", []string{"no job has a schedule"}},
	} {
		a, stdout, stderr := newFullApp(t, dir)
		if code := a.Run(t.Context(), strings.Fields(test.line)); code != 0 {
			t.Errorf("%s: exit %d: %s", test.line, code, stderr)
		}
		got := stdout.String() + stderr.String()
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got\n%s\nwant %s", test.line, got, want)
			}
		}
	}
}
