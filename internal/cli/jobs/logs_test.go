package jobs

import (
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
)

// TestLogsOfName checks which of several jobs of a name roost logs means. It is the one
// that has not ended, else the newest. Of several that have not ended it means none.
func TestLogsOfName(t *testing.T) {
	job := func(id, state string, submitted int64) *wire.JobStatus {
		return &wire.JobStatus{Id: id, Name: "web", Owner: "ann", Tasks: 1, State: state, Submitted: submitted,
			Counts: clitest.TaskCounts(state, 1)}
	}
	for _, c := range []struct {
		name       string
		jobs       []*wire.JobStatus
		want, says string
	}{
		{"one has not ended", []*wire.JobStatus{job("1.pool", "completed", 1), job("2.pool", "running", 2),
			job("3.pool", "removed", 3)}, "2.pool", ""},
		{"all have ended", []*wire.JobStatus{job("1.pool", "completed", 1), job("3.pool", "removed", 3),
			job("2.pool", "completed", 2)}, "3.pool", "this is the newest, 3.pool"},
		{"two have not ended", []*wire.JobStatus{job("1.pool", "running", 1), job("2.pool", "idle", 2)}, "",
			"names several jobs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := ""
			f := &clitest.FakeSchedd{Jobs: c.jobs, LogsFunc: func(req *wire.LogsRequest,
				_ grpc.ServerStreamingServer[wire.LogChunk]) error {
				asked = req.GetId()
				return nil
			}}
			a, _, stderr := clitest.NewApp(t, f.Serve(t), frame.WithCommonFlags([]*frame.Command{LogsCommand()}))
			code := a.Run(t.Context(), []string{"roost", "logs", "@web"})
			if asked != c.want || (code == 0) != (c.want != "") || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("exit %d, asked about %q, want %q: %s", code, asked, c.want, stderr)
			}
		})
	}
}
