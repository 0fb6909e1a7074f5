package pbs

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire"
)

// BenchmarkJSON measures the longest form of a job, with its owner's whole environment.
func BenchmarkJSON(b *testing.B) {
	r, err := qsub.ParseQsub([]string{"-V", "-l", "select=1:ncpus=1:mem=16mb,walltime=1:00:00"}, qsub.QsubCaller{
		Dir: "/tmp", Home: "/tmp", User: frame.LoginName(), Group: "bench", Host: "here", Now: clitest.Noon,
		Environ: []string{"PATH=/usr/bin:/bin", "MODULES=" + strings.Repeat("/opt/modules/lib:", 240)},
		Stdin: func() ([]byte, error) {
			return []byte("true\n"), nil
		}, LookPath: exec.LookPath, IsDir: func(string) bool { return false },
	})
	if err != nil {
		b.Fatal(err)
	}
	c := &frame.Invocation{App: frame.NewApp(strings.NewReader(""), io.Discard, io.Discard, nil, nil)}
	s := &wire.JobStatus{Id: "7.here", Name: "x", Owner: frame.LoginName(), State: "idle", Tasks: 1,
		Submitted: clitest.Noon.UnixNano(), Counts: clitest.TaskCounts("idle", 1), Ad: r.Job.Ad.String(),
		Request: &wire.Resources{MilliCpu: 1000, Memory: 1 << 24}}
	full := qstat.NewJSON(io.Discard, clitest.Noon, "v", "here")
	b.ReportAllocs()
	for b.Loop() {
		if err := full.Print(pbsObject(c, s)); err != nil {
			b.Fatal(err)
		}
	}
}
