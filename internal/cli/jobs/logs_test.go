package jobs

import (
	"regexp"
	"strings"
	"testing"
	"time"

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

// TestLogTimes checks what roost logs asks of a schedd about times, and what it prints.
// One with an older version sends no times, which is an error and not all output.
func TestLogTimes(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 30, 0, 0, time.Local)
	stamp, utc := at.Format(time.RFC3339), at.UTC().Format(time.RFC3339)
	for _, c := range []struct {
		args, out, refusal string
		since              int64
		old                bool
	}{
		{args: "--since 2026-03-01T10:30", out: "a b\nc", since: at.UnixMilli()},
		{args: "--timestamps", out: stamp + " a b\n" + stamp + " c"},
		{args: "--json", out: `{"line":{"attempt":1,"stream":"stdout","offset":7,"time":"` + utc +
			`","text":"a b"},"v":1}` + "\n" +
			`{"line":{"attempt":1,"stream":"stdout","offset":11,"time":"` + utc + `","text":"c"},"v":1}` + "\n"},
		{args: "--json", old: true, out: `{"line":{"attempt":1,"stream":"stdout","offset":7,"text":"a b"},"v":1}` +
			"\n" + `{"line":{"attempt":1,"stream":"stdout","offset":11,"text":"c"},"v":1}` + "\n"},
		{args: "--since 1h", old: true, refusal: "older version, which has no times of output; leave out --since"},
		{args: "--timestamps", old: true, refusal: "the times of this output are not known"},
		{args: "--since 3000-01-01", refusal: "--since: 3000-01-01T00:00:00.* is in the future: .* now; name a time"},
		{args: "--until soon", refusal: `--until: "soon" is neither a length of time, as 90m or 2d, nor a date`},
		{args: "--until 1h -f", refusal: "--until and --follow contradict each other"},
		{args: "--until 2h --since 1h", refusal: "--until: .* is before --since, .*; exchange them"},
	} {
		t.Run(c.args, func(t *testing.T) {
			since := int64(0)
			f := &clitest.FakeSchedd{LogsFunc: func(req *wire.LogsRequest,
				to grpc.ServerStreamingServer[wire.LogChunk]) error {
				since = req.GetSinceMs()
				for i, text := range []string{"a ", "b\n", "c"} {
					chunk := &wire.LogChunk{Data: []byte(text), Attempt: 1, Offset: int64(7 + 2*i),
						WrittenMs: at.UnixMilli()}
					if c.old {
						chunk.WrittenMs = 0
					}
					if err := to.Send(chunk); err != nil {
						return err
					}
				}
				return nil
			}}
			a, stdout, stderr := clitest.NewApp(t, f.Serve(t), frame.WithCommonFlags([]*frame.Command{LogsCommand()}))
			code := a.Run(t.Context(), append([]string{"roost", "logs", "1"}, strings.Fields(c.args)...))
			if (code != 0) != (c.refusal != "") || stdout.String() != c.out || c.since != 0 && since != c.since {
				t.Errorf("exit %d, since %d, got\n%swant\n%s%s", code, since, stdout, c.out, stderr)
			}
			if !regexp.MustCompile(c.refusal).MatchString(stderr.String()) {
				t.Errorf("got %s want %s", stderr, c.refusal)
			}
		})
	}
}
