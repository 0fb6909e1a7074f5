package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

var updateGolden = flag.Bool("update", false, "write the golden files instead of comparing with them")

var testNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func timeBefore(d time.Duration) int64 { return testNoon.Add(-d).UnixNano() }

// newTestApp returns a program that talks to the pool in dir and writes into buffers.
func newTestApp(t *testing.T, dir string) (a *App, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	a = New(strings.NewReader(""), stdout, stderr,
		[]string{"ROOST_DIR=" + dir, "HOME=/home/ann", "PATH=/usr/bin:/bin", "TZ=UTC"})
	a.dir, a.now = t.TempDir(), func() time.Time { return testNoon }
	a.interrupts = make(chan os.Signal, 4)
	return a, stdout, stderr
}

func taskCounts(pairs ...any) map[string]uint32 {
	m := map[string]uint32{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = uint32(pairs[i+1].(int))
	}
	return m
}

// sampleJobs is a small pool with a job of each sort.
func sampleJobs() *fakeSchedd {
	one := &wire.Resources{MilliCpu: 1000, Memory: 256 << 20}
	big := &wire.Resources{MilliCpu: 500, Memory: 4 << 30, Gpus: 1}
	code3 := &wire.ExitStatus{Code: 3, Wall: 61e9, UserCpu: 59e9, MaxRss: 70 << 20}
	f := &fakeSchedd{
		jobs: []*wire.JobStatus{
			{Id: "64.pool.example.org", Name: "idler", Owner: "ann", Band: "batch",
				Submitted: timeBefore(5 * time.Second), Tasks: 1, State: "idle",
				Counts: taskCounts("idle", 1), Request: big, Reason: "no machine has a GPU",
				Brief: "wait 1/1: no node of 12 fits: 12 too small"},
			{Id: "63.pool.example.org", Name: "sweep with a very long name indeed", Owner: "ann", Band: "batch",
				Submitted: timeBefore(3 * time.Hour), Started: timeBefore(2 * time.Hour),
				Tasks: 16, Array: true, Counts: taskCounts("running", 2, "idle", 2, "completed", 12, "failed", 1),
				Request: one},
			{Id: "62.pool.example.org", Name: "evil\x1b[2Jname", Owner: "bob", Band: "production",
				Submitted: timeBefore(26 * time.Hour), Eligible: timeBefore(3 * time.Hour),
				Waited: int64(90 * time.Minute), Started: timeBefore(time.Minute), Tasks: 1,
				State: "running", Counts: taskCounts("running", 1), Request: one, Node: "n2", Attempt: 2, Priority: 7,
				Queue: "express",
				Placed: &wire.Placed{Units: []string{"gpu0", "gpu1"}, Cores: []uint32{0, 1, 2, 8},
					Gpus: []*wire.Placed_Gpu{
						{Uuid: "GPU-1", Index: 0, Model: "NVIDIA A100", Memory: 20 << 30},
						{Uuid: "GPU-2", Index: 1, Whole: true},
					}}},
			{Id: "61.pool.example.org", Name: "broken", Owner: "ann", Band: "batch",
				Submitted: timeBefore(50 * time.Hour), Started: timeBefore(49 * time.Hour),
				Ended: timeBefore(48 * time.Hour),
				Tasks: 1, State: "completed", Counts: taskCounts("completed", 1, "failed", 1), Request: one, Node: "n1",
				Attempt: 1, Exit: code3},
		},
		tasks: []*wire.JobStatus{
			{Id: "63[0].pool.example.org", Name: "sweep", Owner: "ann", State: "completed", Request: one, Node: "n1",
				Attempt: 1, Exit: code3, Tasks: 1, Started: timeBefore(time.Hour), Ended: timeBefore(time.Minute)},
			{Id: "63[1].pool.example.org", Name: "sweep", Owner: "ann", State: "running", Request: one, Node: "n10",
				Index: 1, Attempt: 1, Tasks: 1, Started: timeBefore(time.Hour)},
		},
		machines: []string{
			`[Name = "n10"; MyType = "Machine"; State = "Claimed"; Cpus = 0; TotalCpus = 2; Memory = 512; TotalMemory = 2048; LoadAvg = 1.5; NumRunning = 1]`,
			`[Name = "n2"; MyType = "Machine"; State = "Unclaimed"; Cpus = 7.5; TotalCpus = 8; Memory = 12800; TotalMemory = 16384; LoadAvg = 0.1; TotalGpus = 2; Gpus = 1; RUs = {` +
				`[Name = "cpu"; Cpus = 3.5; StreamCpus = 4; TotalCpus = 4; Memory = 4608; TotalMemory = 8192; RunLimit = 0; Running = 1; QueueLength = 0; QueueRoom = 2; PredictedWait = 0.0], ` +
				`[Name = "gpu0"; Cpus = 0; StreamCpus = 4; TotalCpus = 4; Memory = 8192; TotalMemory = 8192; RunLimit = 2; Running = 1; QueueLength = 3; QueueRoom = 1; PredictedWait = 95.0; Gpus = {` +
				`[UUID = "GPU-4d7f"; Model = "NVIDIA A100-SXM4-40GB"; Memory = 40960; Free = 30720; Tasks = 1; NUMA = 0; Capability = "8.0"; Healthy = true]}]}; GpuDevices = {` +
				`[Index = 0; UUID = "GPU-4d7f"; Model = "NVIDIA A100-SXM4-40GB"; Memory = 40960; MemoryUsed = 10240; Busy = 0.42; Temperature = 61; Power = 250.5; Healthy = true],` +
				`[Index = 1; UUID = "GPU-77aa"; Model = "NVIDIA A100-SXM4-40GB"; Memory = 40960; Healthy = false; Why = "the card has fallen off the bus"]}]`,
		},
		events: []*wire.JobEvent{
			{Sequence: 1, Time: timeBefore(50 * time.Hour), Id: "61.pool.example.org", What: "submitted",
				Text: "by ann"},
			{Sequence: 4, Time: timeBefore(49 * time.Hour), Id: "61.pool.example.org", Attempt: 1, What: "started",
				Node: "n1"},
			{Sequence: 5, Time: timeBefore(48 * time.Hour), Id: "61.pool.example.org", Attempt: 1, What: "completed",
				Exit: code3},
		},
	}
	f.explanation = &wire.WhyReply{Status: f.jobs[0], Summary: "no machine has what it asks for",
		Explanation: &wire.Explanation{
			Machines: 12, Ahead: 7, Higher: 2, Own: 4, Waiting: 1200, Brief: "wait 8/1200: 11 of 12 nodes busy",
			Start: testNoon.Unix() + 20*60, Certainty: "walltime", Basis: "by the walltimes of what runs there",
			Reasons: []*wire.Explanation_Reason{{Text: "have no GPU", Machines: 11, Kind: "too small"},
				{Text: "is used by its owner", Machines: 1, Kind: "owner active"}},
			Conditions: []*wire.Explanation_Condition{
				{Text: "TARGET.Gpus >= RequestGpus", Means: "TARGET.Gpus >= 1", Pass: 1, Fail: 2,
					Undefined: 9, Alone: 3},
				{Text: `TARGET.Owner == "bob"`, Own: true, Pass: 11, Fail: 1},
			},
			Conflicts: []string{"A and B contradict each other"},
			Nearest:   []string{"n1 misses only TARGET.Gpus >= 1: its Gpus is 0"},
			Advice:    []string{"ask for no GPU"}}, Advice: []string{"ask for no GPU"}}
	return f
}

// TestCommands holds what commands print, which the golden files show; -update writes
// them.
func TestCommands(t *testing.T) {
	for _, group := range []struct {
		file  string
		lines []string
	}{
		{"jobs", []string{"roost jobs", "roost jobs --all --history", "roost jobs 63", "roost jobs 63[0] 63[1]",
			"roost ls -tn5 63", "roost jobs 99", "roost jobs --state failed", "roost jobs -s failt",
			"roost jobs --json 64", "roost jobs --json 63[1]"}},
		{"show", []string{"roost show 61", "roost show --json 61", "roost show 63", "roost why 64",
			"roost why --json last", "roost history", "roost history --since 1h", "roost history --since soon",
			"roost history --json"}},
		{"change", []string{"roost hold 63", "roost release last", "roost rm 63 61", "roost rm 99",
			"roost retry --json 61", "roost rm"}},
		{"pool", []string{"roost nodes", "roost nodes --gpus", "roost nodes --units", "roost nodes --json",
			"roost ads -a Name,Cpus", "roost ads --json --attributes name"}},
		{"usage", []string{"roost", "roost jbos", "roost help wait", "roost jobs --jsno", "roost jobs -Z",
			"roost wait --timeout", "roost wait --timeout soon 3", "roost show 1 2", "roost --colour jobs",
			"roost --color maybe jobs", "roost completion tcsh"}},
		{"qstat", []string{"qstat", "qstat -x -t", "qstat -t", "qstat 63", "qstat 62.pool -f", "qstat -f 63",
			"qstat -f 63[1]", "qstat -fx 61", "qstat -fw 62", "qstat 61", "qstat 999.pool", "qstat 62 999 61",
			"qstat 12x", "qstat -Z", "qstat -w -u bob,eve",
			"qstat -s", "qstat -xs -1 61", "qstat -sw 64", "roost qstat 62@pool", "qstat -a", "qstat -ans1",
			"qstat -an", "qstat -i", "qstat -r", "qstat -H", "qstat -T", "qstat -aG", "qstat -aM", "qstat -J",
			"qstat -p", "qstat -pxt", "qstat -E 62 64",
			"qstat -f -F json 62 61 -x", "qstat -fFjson 999", "qstat -f -F dsv 62", "qstat -f -F dsv -D ; 62",
			"qstat -f -F json -a", "qstat -a -i", "qstat -Q", "qstat -Q nope", "qstat -Qf", "qstat -Qf -F json",
			"qstat -q", "qstat -B", "qstat -Bf", "qstat -Bf -F dsv",
			"qstat express", "qstat nope", "qstat @pool", "qstat a/b", "qstat -E batch", "qstat 62\x01",
			"qstat 62\x0163", "qstat -f 62.pool/x", "PBS_DEFAULT=foo.example.org qstat",
			"PBS_DEFAULT=foo.example.org:15001 qstat 62.pool", "PBS_DEFAULT=pool:15001 qstat 62",
			"PBS_SERVER=pool.example.org qstat 62"}},
		{"torque", []string{"ROOST_DIALECT=torque qstat", "ROOST_DIALECT=torque qstat -c",
			"ROOST_DIALECT=torque qstat -t 63", "ROOST_DIALECT=torque qstat -x 62 61",
			"ROOST_DIALECT=torque qstat -f -x 999", "ROOST_DIALECT=torque qstat -xu nobody",
			"ROOST_DIALECT=torque qstat -f -1 61", "ROOST_DIALECT=torque qstat -f 63",
			"ROOST_DIALECT=torque qstat -an1", "ROOST_DIALECT=torque qstat -r -G",
			"ROOST_DIALECT=torque qstat -f -F json -x 61", "ROOST_DIALECT=torque pbsnodes",
			"ROOST_DIALECT=torque pbsnodes -x n2", "ROOST_DIALECT=torque pbsnodes -l free",
			"ROOST_DIALECT=torque pbsnodes -o -N fan n2", "ROOST_DIALECT=torque pbsnodes -A dust n2",
			"ROOST_DIALECT=torque pbsnodes -l", "ROOST_DIALECT=torque pbsnodes -nl n2",
			"ROOST_DIALECT=torque pbsnodes -c n2", "ROOST_DIALECT=torque pbsnodes -o",
			"ROOST_DIALECT=torque pbsnodes --version", "pbsnodes -x n2", "ROOST_DIALECT=torque qdel 99",
			"ROOST_DIALECT=Torque qstat", "qstat -lceR",
			"ROOST_DIALECT=torque qstat -r", "ROOST_DIALECT=torque qstat -u ann", "ROOST_DIALECT=torque qselect",
			"ROOST_DIALECT=torque qselect -s R", "ROOST_DIALECT=torque qselect -u ann -s EHRT",
			"ROOST_DIALECT=torque qselect -s QC", "ROOST_DIALECT=torque qselect -J",
			"ROOST_DIALECT=torque qselect -s B"}},
		{"qdel", []string{"qdel 63[]", "qdel 999.pool 62", "qdel 61", "qdel -x 61", "qdel -W force 62", "qdel -Wfoo 62",
			"qdel", "qdel @pool", "qhold -h u 62", "qhold -h x 62", "qrls 62 99", "qdel 62.pool\x01",
			"qdel \x0162.pool\x01 9\x019", "qdel 6\x1b[2J", "qrls 62/x", "qorder 62\x01 x", "qrun -a 62",
			"qrun -a -H (n1)+n2 62 61 999", "qrun -H n1:ncpus=2 62", "qrun -H - 62", "qrun -H n1++n2 62", "qrun",
			"qrun -a 6x", "pbs_release_nodes -j 62 n2 n3", "pbs_release_nodes -j 62 -k 2", "pbs_release_nodes -a -k 1",
			"pbs_release_nodes -k 1 n1", "pbs_release_nodes -j 62 -k some", "pbs_release_nodes -j 62",
			"pbs_release_nodes -j 6x -a", "pbs_release_nodes -a", "pbs_release_nodes -j 999 -a", "tracejob 6\x012",
			"PBS_SERVER=foo qdel 62", "PBS_SERVER=foo qdel 62@pool",
			"PBS_DEFAULT=foo qsub -- /bin/true", "PBS_DEFAULT=foo qsub --version"}},
		{"qselect", []string{"qselect", "qselect -x", "qselect -H -u ann", "qselect -x -J -T", "qselect -s Q",
			"qselect -u nobody", "qselect -l wings=2", "qselect -p high", "qselect 62", "qselect -Z", "qselect -q a@b",
			"qselect -q @pool", "qselect -N " + strings.Repeat("n", 231), "qselect -u " + strings.Repeat("u", 257)}},
		{"pbsnodes", []string{"pbsnodes -a", "pbsnodes n2 n9", "pbsnodes -aSj", "pbsnodes -aS", "pbsnodes -SjL n10",
			"pbsnodes -aSj -F json", "pbsnodes -F json n9", "pbsnodes -a -F dsv -D ;", "pbsnodes -l", "pbsnodes",
			"pbsnodes -Z", "pbsnodes -o",
			"pbsnodes -o -C fan n2", "pbsnodes -l", "pbsnodes -C heat n2", "pbsnodes -l", "pbsnodes -aS",
			"pbsnodes -r n2", "pbsnodes -l", "pbsnodes -C dust n2", "pbsnodes -C dust n99", "pbsnodes -l",
			"pbsnodes -S n2", "pbsnodes n2", "ROOST_DIALECT=torque pbsnodes -A fan n2", "roost comment",
			"roost nodes --json", "pbsnodes -o -C heat n2", "pbsnodes -l", "pbsnodes -r n2", "roost comment n2 ''",
			"roost comment", "roost comment n2", "roost comment n99 x", "pbsnodes -o n99", "pbsnodes -q -o n99",
			"pbsnodes --version"}},
		{"tracejob", []string{"tracejob 61", "tracejob -n 3 61", "tracejob -n 3 -alm 61", "tracejob -n 3 -s -v 61.pool",
			"tracejob -n 3 -w 60 -f job_usage 61", "tracejob 64 -l", "tracejob 64", "tracejob -n 5 999", "tracejob",
			"tracejob -n soon 61", "tracejob -f x 61"}},
		{"reservations", []string{"pbs_rstat", "pbs_rsub -R 1300 -E 1500 -l select=2:ncpus=4:mem=2gb -N class -I 5",
			"pbs_rsub -R 1400 -D 1:00:00 -lncpus=3 -mn", "pbs_rsub -R 1400 -D 1:00:00 -l select=1:host=n2",
			"pbs_rsub -R 1500 -D 1:00:00 -l select=1:host=n2 -U +daemon@pool,-bin",
			"pbs_rsub -R 1530 -D 600 -l select=1:host=n2", "pbs_rsub -E 1530 -D 10 -l ncpus=10,mem=1tb",
			"pbs_rsub -E 03021600 -D 900", "pbs_rsub -R 1300", "pbs_rsub -R 1300 -E 1200x",
			"pbs_rsub -R 1300 -E 1400 -l select=1:wings=2", "pbs_rsub -R 1300 -E 1400 -U nobody-of-that-name",
			"pbs_rsub -R 1300 -E 1400 -r FREQ=DAILY", "pbs_rsub -R 1300 -E 1400 -ma", "pbs_rsub --hosts n1",
			"pbs_rsub -R 1300 -E 1400 x", "pbs_rsub -Z",
			"roost reservation set late --users root --nodes n7 --force --from 2026-02-01T00:00:00Z --until " +
				"2026-03-01T14:00:00Z", "pbs_rstat", "pbs_rstat -f R1 R2.pool", "pbs_rstat -B R9 late",
			"pbs_rstat -SB R1 R1/x", "pbs_rstat -Z", "qstat -Q", "qstat -Qf R1", "qstat R1", "qstat R9",
			"qselect -q R1", "pbs_ralter -E 1600 R1", "pbs_ralter -l ncpus=2 -N lecture R2.pool",
			"pbs_ralter -U daemon -D 7200 R1", "pbs_ralter -l ncpus=90 R1", "pbs_ralter -R 1100 R1", "pbs_ralter R1",
			"pbs_ralter -E 1600 R9",
			"pbs_rstat -F R1 R2", "pbs_rdel R1 R9 R2@pool", "pbs_rdel", "pbs_rstat -S",
			"roost reservation rm --jobs nothing", "roost reservation rm --jobs late", "roost reservation"}},
		{"printjob", []string{"printjob 62", "printjob -a 61 63[1]", "printjob -s 62", "printjob 99 12x", "printjob",
			"printjob -as 62", "pbs_hostn 127.0.0.1", "pbs_hostn a..b", "pbs_hostn", "pbs_attach -j 62",
			"pbs_attach -p 7", "pbs_attach -m 7 -j 62 ls", "pbs_attach true", "pbs_attach -j x true",
			"PBS_JOBID=62.pool pbs_attach echo here", "PBS_JOBID=62.pool pbs_attach -j 62.pool -- false",
			"PBS_JOBID=62.pool pbs_attach /no/such"}},
		{"words", []string{"roost words -- his", "roost words -- jobs --st", "roost words -- jobs --state f",
			"roost words -- wait 6", "roost words -- submit ''"}},
	} {
		t.Run(group.file, func(t *testing.T) {
			dir := sampleJobs().serve(t)
			var b strings.Builder
			for _, line := range group.lines {
				a, stdout, stderr := newTestApp(t, dir)
				args := strings.Fields(strings.ReplaceAll(line, "''", "\x00"))
				for strings.Contains(args[0], "=") { // a variable of the environment
					a.env, args = append(a.env, args[0]), args[1:]
				}
				for i := range args {
					args[i] = strings.NewReplacer("\x00", "", "\x01", " \n").Replace(args[i])
				}
				code := a.Run(t.Context(), args)
				fmt.Fprintf(&b, "$ %s\n%s", line, stdout)
				for _, l := range strings.SplitAfter(stderr.String(), "\n") {
					if l != "" {
						b.WriteString("! " + l)
					}
				}
				if code != 0 {
					fmt.Fprintf(&b, "[exit status %d]\n", code)
				}
				b.WriteString("\n")
			}
			text := strings.ReplaceAll(b.String(), "Users = "+loginName(), "Users = me")
			for _, more := range []string{"", ",daemon"} { // in a column of pbs_rstat
				text = strings.ReplaceAll(text, fmt.Sprintf(" %-8.8s CO ", loginName()+more),
					fmt.Sprintf(" %-8.8s CO ", "me"+more))
			}
			compareGolden(t, group.file, strings.ReplaceAll(text, dir, "/pool"))
		})
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *updateGolden {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run go test -update and look at the change\ngot:\n%s", file, got)
	}
}

// TestTablesFit holds that a window is never exceeded and that ids and states are never
// cut.
func TestTablesFit(t *testing.T) {
	f := sampleJobs()
	for width := 60; width <= 140; width += 5 {
		a, stdout, _ := newTestApp(t, f.serve(t))
		a.out = outputScreen{terminal: true, width: width}
		if code := a.Run(t.Context(), []string{"roost", "jobs", "--all", "--history"}); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		for _, line := range strings.Split(stdout.String(), "\n") {
			if textWidth(line) > width {
				t.Errorf("width %d: %d characters: %q", width, textWidth(line), line)
			}
		}
		for _, j := range f.jobs {
			if !strings.Contains(stdout.String(), j.GetId()+" ") || !strings.Contains(stdout.String(), stateOf(j)) {
				t.Errorf("width %d: %s or its state is cut:\n%s", width, j.GetId(), stdout)
			}
		}
	}
}

// TestSubmitAgain holds that a submit whose answer is lost is sent again under the same
// key.
func TestSubmitAgain(t *testing.T) {
	f := &fakeSchedd{lostReplies: 2}
	a, stdout, stderr := newTestApp(t, f.serve(t))
	a.stdin = strings.NewReader("job \"hello\" {\n  executable = \"/bin/echo\"\n}\n")
	if code := a.Run(t.Context(), []string{"roost", "submit", "-"}); code != 0 || stdout.String() != "70.pool\n" {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if n := len(f.submitted); n != 3 || f.submitted[0].GetKey() != f.submitted[2].GetKey() ||
		len(f.submitted[0].GetKey()) < 16 {
		t.Errorf("%d submits, keys %q and %q", n, f.submitted[0].GetKey(), f.submitted[n-1].GetKey())
	}
}

func singleJob(state string, exit *wire.ExitStatus) *wire.JobStatus {
	return &wire.JobStatus{Id: "70.pool", Name: "hello", Owner: "ann", Tasks: 1, State: state,
		Counts: taskCounts(state, 1), Exit: exit}
}

// TestRun holds the exit status and the streams of roost run.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		exit *wire.ExitStatus
		code int
		err  string
	}{
		{&wire.ExitStatus{}, 0, "to stderr\n"},
		{&wire.ExitStatus{Code: 7}, 7, "to stderr\n"},
		{&wire.ExitStatus{Signal: 9}, 137, "to stderr\nroost: 70.pool: killed by SIGKILL\n"},
		{&wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH, Reason: "exec: no such file"}, 127,
			"to stderr\nroost: 70.pool: exec: no such file\n"},
	} {
		f := &fakeSchedd{
			watch: func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
				to.Send(&wire.WatchEvent{Status: singleJob("idle", nil)})
				return to.Send(&wire.WatchEvent{Status: singleJob("completed", test.exit)})
			},
			logs: func(req *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error {
				text := "to stdout\n"
				if req.GetStderr() {
					text = "to stderr\n"
				}
				return to.Send(&wire.LogChunk{Data: []byte(text), Attempt: 1})
			},
		}
		a, stdout, stderr := newTestApp(t, f.serve(t))
		code := a.Run(t.Context(), []string{"roost", "run", "--", "/bin/echo", "--flag"})
		if code != test.code || stdout.String() != "to stdout\n" || stderr.String() != test.err {
			t.Errorf("%v: exit status %d, stdout %q, stderr %q", test.exit, code, stdout, stderr)
		}
	}
}

// TestRunInterrupted holds that the first interrupt removes the job and the second
// leaves.
func TestRunInterrupted(t *testing.T) {
	for _, twice := range []bool{false, true} {
		gone := make(chan struct{})
		f := &fakeSchedd{removed: gone, jobs: []*wire.JobStatus{singleJob("running", nil)}}
		f.watch = func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
			if twice {
				<-to.Context().Done()
				return to.Context().Err()
			}
			<-gone
			return to.Send(&wire.WatchEvent{Status: singleJob("removed", nil)})
		}
		f.logs = func(_ *wire.LogsRequest, to grpc.ServerStreamingServer[wire.LogChunk]) error { return nil }
		a, _, stderr := newTestApp(t, f.serve(t))
		a.interrupts <- os.Interrupt
		if twice {
			a.interrupts <- os.Interrupt
		}
		if code := a.Run(t.Context(), []string{"roost", "run", "--", "/bin/sleep", "1000"}); code != 130 {
			t.Errorf("twice %v: exit status %d, %s", twice, code, stderr)
		}
		if !strings.Contains(stderr.String(), "removing 70.pool") ||
			twice != strings.Contains(stderr.String(), "left") {
			t.Errorf("twice %v: it says %q", twice, stderr)
		}
	}
}

// TestWait holds the exit status of roost wait, and that it goes on when the schedd was
// away.
func TestWait(t *testing.T) {
	array := func(done, failed int) *wire.JobStatus {
		return &wire.JobStatus{Id: "71.pool", Name: "sweep", Tasks: 4, Array: true,
			Counts: taskCounts("completed", done, "failed", failed, "running", 4-done)}
	}
	for _, test := range []struct {
		name   string
		events []*wire.WatchEvent
		code   int
	}{
		{"single", []*wire.WatchEvent{{Status: singleJob("running", nil)},
			{Status: singleJob("completed", &wire.ExitStatus{Code: 9})}}, 9},
		{"array", []*wire.WatchEvent{{Status: array(1, 0)}, {Status: array(4, 0)}}, 0},
		{"failed", []*wire.WatchEvent{{Status: array(1, 0)},
			{Status: array(4, 2), Failed: []*wire.JobStatus{{Id: "71[2].pool", State: "completed",
				Exit: &wire.ExitStatus{Code: 2}, Node: "n1"}}}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			f := &fakeSchedd{watch: func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
				calls++
				if calls == 1 {
					to.Send(test.events[0])
					return context.DeadlineExceeded // the schedd went away
				}
				for _, e := range test.events {
					to.Send(e)
				}
				return nil
			}}
			a, stdout, stderr := newTestApp(t, f.serve(t))
			if code := a.Run(t.Context(), []string{"roost", "wait", "last"}); code != test.code {
				t.Errorf("exit status %d, want %d", code, test.code)
			}
			compareGolden(t, "wait-"+test.name, stdout.String()+stderr.String())
		})
	}
}

// TestWaitTimeout holds the status of a wait that takes too long.
func TestWaitTimeout(t *testing.T) {
	f := &fakeSchedd{watch: func(to grpc.ServerStreamingServer[wire.WatchEvent]) error {
		to.Send(&wire.WatchEvent{Status: singleJob("running", nil)})
		<-to.Context().Done()
		return to.Context().Err()
	}}
	a, _, stderr := newTestApp(t, f.serve(t))
	if code := a.Run(t.Context(), []string{"roost", "wait", "--timeout", "200ms", "70"}); code != exitTimedOut {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
