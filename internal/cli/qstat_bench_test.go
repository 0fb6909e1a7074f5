package cli

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire"
)

// What a job takes in the longest of the forms, with everything that its owner's
// environment holds.
func BenchmarkJSON(b *testing.B) {
	r, err := qsub.ParseQsub([]string{"-V", "-l", "select=1:ncpus=1:mem=16mb,walltime=1:00:00"}, qsub.QsubCaller{
		Dir: "/tmp", Home: "/tmp", User: loginName(), Group: "bench", Host: "here", Now: testNoon,
		Environ: []string{"PATH=/usr/bin:/bin", "MODULES=" + strings.Repeat("/opt/modules/lib:", 240)},
		Stdin: func() ([]byte, error) {
			return []byte("true\n"), nil
		}, LookPath: exec.LookPath, IsDir: func(string) bool { return false },
	})
	if err != nil {
		b.Fatal(err)
	}
	c := &invocation{App: newApp(strings.NewReader(""), io.Discard, io.Discard, nil, pbsCommands)}
	s := &wire.JobStatus{Id: "7.here", Name: "x", Owner: loginName(), State: "idle", Tasks: 1,
		Submitted: testNoon.UnixNano(), Counts: taskCounts("idle", 1), Ad: r.Job.Ad.String(),
		Request: &wire.Resources{MilliCpu: 1000, Memory: 1 << 24}}
	full := qstat.NewJSON(io.Discard, testNoon, "v", "here")
	b.ReportAllocs()
	for b.Loop() {
		if err := full.Print(c.pbsObject(s)); err != nil {
			b.Fatal(err)
		}
	}
}
