package condor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
)

// testJobs is a queue with a task in each state.
func testJobs() *clitest.FakeSchedd {
	one := &wire.Resources{MilliCpu: 1000, Memory: 256 << 20, Disk: 1 << 20}
	ad := `[Cmd = "/home/ann/bin/sim"; Arguments = {"$(TaskIndex)", "a b", ""}; Iwd = "/home/ann"; ` +
		`Out = "/home/ann/o.$(JobSeq).$(TaskIndex)"; Err = "/home/ann/e"; ` +
		`Labels = [Run = "3"; ClusterId = "9"; Say = "hi"]]`
	f := &clitest.FakeSchedd{}
	add := func(id, owner, state string, index uint32, more func(*wire.JobStatus)) {
		s := &wire.JobStatus{Id: id, Name: "sweep one", Owner: owner, State: state, Index: index, Tasks: 1,
			Request: one, Submitted: clitest.TimeBefore(time.Hour), Ad: ad, Array: strings.Contains(id, "[")}
		if more != nil {
			more(s)
		}
		f.Tasks = append(f.Tasks, s)
	}
	started := clitest.TimeBefore(30 * time.Minute)
	add("7[0].pool", "ann", "completed", 0, func(s *wire.JobStatus) {
		s.Started, s.Ended, s.Node, s.Attempt = started, clitest.TimeBefore(time.Minute), "n1", 1
		s.Exit = &wire.ExitStatus{Code: 3, Wall: 61e9, UserCpu: 59e9, MaxRss: 70 << 20}
	})
	add("7[1].pool", "ann", "running", 1, func(s *wire.JobStatus) { s.Started, s.Node, s.Attempt = started, "n1", 2 })
	add("7[2].pool", "ann", "idle", 2, nil)
	add("7[3].pool", "ann", "held", 3, func(s *wire.JobStatus) { s.Reason = "wrong\ninput" })
	add("8.pool", "bob", "suspended", 0, func(s *wire.JobStatus) {
		s.Name, s.Started, s.Node, s.Attempt = "evil\x1b[2J name", started, "n2", 1
	})
	add("9.pool", "ann", "completed", 0, func(s *wire.JobStatus) {
		s.Started, s.Ended, s.Node, s.Attempt = started, clitest.TimeBefore(2*time.Minute), "n1", 1
		s.Exit = &wire.ExitStatus{Signal: 9, Cause: wire.Cause_CAUSE_MEMORY, Wall: 3e9}
	})
	add("10.pool", "ann", "removed", 0, func(s *wire.JobStatus) { s.Reason = "via condor_rm" })
	f.Machines = clitest.SampleJobs().Machines
	f.Jobs = []*wire.JobStatus{
		{Id: "7.pool", Name: "sweep one", Owner: "ann", Array: true, Tasks: 4, State: "running", Ad: ad},
		{Id: "8.pool", Name: "x", Owner: "bob", Tasks: 1, State: "suspended", Ad: ad},
		{Id: "9.pool", Name: "x", Owner: "ann", Tasks: 1, State: "completed", Ad: ad},
		{Id: "10.pool", Name: "x", Owner: "ann", Tasks: 1, State: "removed", Ad: ad},
	}
	return f
}

// TestCondorCommands holds what the commands print, which the golden file shows; -update
// writes it.
func TestCondorCommands(t *testing.T) {
	f := testJobs()
	dir, work := f.Serve(t), t.TempDir()
	for name, text := range map[string]string{
		"sim.log": "000 (004.000.000) 2026-11-30 10:00:00 Job submitted from host: <a>\n...\n" +
			"000 (004.001.000) 2026-11-30 10:00:00 Job submitted from host: <a>\n...\n" +
			"005 (004.000.000) 2026-11-30 10:00:01 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n" +
			"009 (004.001.000) 2026-11-30 10:00:02 Job was aborted.\n\tby ann\n...\n",
		"a.sub":    "executable = /bin/sleep\narguments = $(N)\nbogus = 1\nqueue 3\n",
		"none.sub": "executable = /bin/sleep\n",
		"bad.sub":  "executable = /bin/sleep\nrequest_cpus = -5\nqueue\n",
	} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for _, line := range []string{
		"condor_submit N=5 a.sub", "condor_submit -terse a.sub -a N=7", "condor_submit none.sub -queue 2",
		"condor_submit none.sub", "condor_submit a.sub -queue 2", "condor_submit bad.sub", "condor_submit missing.sub",
		"condor_submit a.sub none.sub", "condor_submit -interactive a.sub", "condor_submit -append queue a.sub",
		"condor_submit -dry-run - N=5 -batch-name big a.sub", "condor_submit -help",
		"condor_q", "condor_q -allusers", "condor_q -nobatch -allusers", "condor_q -hold", "condor_q -run 7 8",
		"condor_q -af:jh JobStatus ExitCode ExitBySignal 7 9 10", "condor_q 7.1 -long", "condor_q 7.0 7.3 -long",
		"condor_q -json -attributes ClusterId,ProcId,JobStatus,ExitCode,ExitSignal 7.0 9 10 999",
		"condor_q 999 -json", "condor_q 999", "condor_q -constraint JobStatus==5 -af:j HoldReason",
		"condor_q -allusers -constraint Owner==\"bob\" -af:j JobBatchName", "condor_q bob -af ClusterId",
		"condor_q -format %d. ClusterId -format %d\\n ProcId", "condor_q -format %d%d ClusterId", "condor_q -af",
		"condor_q -constraint JobStatus==", "condor_q 7.x", "condor_q -nothing", "condor_q -limit 1 -af ProcId",
		"condor_history", "condor_history -limit 1 -af ClusterId", "condor_history -limit x", "condor_history 9 -json",
		"condor_hold 7.2", "condor_hold 7", "condor_release 8 -reason now", "condor_rm -forcex 8.0", "condor_rm 8.1",
		"condor_rm 999", "condor_rm 999.0", "condor_rm -constraint JobStatus==5", "condor_rm -constraint false",
		"condor_rm -all", "condor_rm bob", "condor_rm -all 7", "condor_rm", "condor_hold -forcex 7", "condor_rm 0",
		"condor_version", "condor_q -version", "condor_status", "condor_status -compact -total", "condor_status n2",
		"condor_status -constraint Cpus>1 -af Name Cpus LoadAvg", "condor_status -json -attributes Name,State",
		"condor_status -nope", "condor_wait", "condor_wait -wait 1 none.log", "condor_wait sim.log",
		"condor_wait sim.log 4.1.0 -status", "condor_wait a.sub", "condor_wait sim.log 4 -num 1 -echo",
		"condor_wait -num 1 7", "condor_wait -wait 0 7", "condor_wait 7.1", "condor_wait sim.log other.log 7",
	} {
		a, stdout, stderr := clitest.NewApp(t, dir, frame.WithCommonFlags(frame.MakeCommands(Entries())))
		a.Dir = work
		f.Acted = nil
		code := a.Run(t.Context(), strings.Fields(line))
		fmt.Fprintf(&b, "$ %s\n%s", line, stdout)
		for _, l := range strings.SplitAfter(stderr.String(), "\n") {
			if l != "" {
				b.WriteString("! " + l)
			}
		}
		for _, req := range f.Acted {
			fmt.Fprintf(&b, "[asked: %v %v force=%v %q]\n", req.GetVerb(), req.GetSelection().GetSelectors(),
				req.GetForce(), req.GetReason())
		}
		if code != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", code)
		}
		b.WriteString("\n")
	}
	clitest.CompareGolden(t, "condor", strings.ReplaceAll(b.String(), work, "DIR"))
}
