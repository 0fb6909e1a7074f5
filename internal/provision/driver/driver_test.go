package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

func newSystem(t *testing.T, s provider.Settings) System {
	t.Helper()
	system, err := New(&s)
	if err != nil {
		t.Fatal(err)
	}
	return system
}

func testJob() Job {
	return Job{Key: "rpkey", Script: "#!/bin/sh\necho 'it''s' $HOME\n", Nodes: 2, Walltime: 90 * time.Minute,
		Margin: 2 * time.Minute, Node: roost.Resources{CPU: 4000, Memory: 8 * roost.GiB}, Exclude: []string{"n1", "n2"},
		Directory: "/tmp", Output: "/tmp/rpkey.out"}
}

const recordCall = `printf '%s\n' "$@" > "$FAKE/arguments"
cat > "$FAKE/input"
`

func TestSlurmSubmit(t *testing.T) {
	dir := programs(t, map[string]string{"sbatch": recordCall + "echo 'Welcome to our cluster'\necho '4711;uni'\n"})
	s := newSystem(t, provider.Settings{Kind: provider.Slurm, Options: []string{"--account=it's ours"}})
	id, err := s.Submit(t.Context(), testJob())
	if err != nil || id != "4711" {
		t.Fatal(id, err)
	}
	want := []string{"--parsable", "--job-name=rpkey", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--time=90",
		"--signal=B:TERM@120", "--no-requeue", "--export=" + exportedVariables, "--output=/tmp/rpkey.out",
		"--cpus-per-task=4", "--mem=8192M", "--exclude=n1,n2", "--account=it's ours"}
	if got := strings.Split(strings.TrimSpace(readFile(dir, "arguments")), "\n"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := readFile(dir, "input"); got != testJob().Script {
		t.Errorf("got %q", got)
	}
}

func TestSlurmRefuses(t *testing.T) {
	programs(t, map[string]string{"sbatch": "cat > /dev/null; echo 'sbatch: error: Invalid account' >&2; exit 1"})
	s := newSystem(t, provider.Settings{Kind: provider.Slurm})
	_, err := s.Submit(t.Context(), testJob())
	if err == nil || errors.Is(err, roost.Unavailable) || !strings.Contains(err.Error(), "Invalid account") {
		t.Errorf("%v", err)
	}
}

// TestUnclearSubmit checks that a submit is unclear if its program gave up waiting, is
// not there, or was killed.
func TestUnclearSubmit(t *testing.T) {
	programs(t, map[string]string{"sbatch": "cat > /dev/null\n" +
		"echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"})
	s := newSystem(t, provider.Settings{Kind: provider.Slurm})
	if _, err := s.Submit(t.Context(), testJob()); !errors.Is(err, roost.Unavailable) {
		t.Errorf("%v", err)
	}
	far := newSystem(t, provider.Settings{Kind: provider.Slurm, Via: []string{"false"}})
	if _, err := far.Submit(t.Context(), testJob()); !errors.Is(err, roost.Unavailable) {
		t.Errorf("%v", err)
	}
	programs(t, map[string]string{"sbatch": "cat > /dev/null; echo 'no number here'"})
	if _, err := s.Submit(t.Context(), testJob()); !errors.Is(err, roost.Unavailable) {
		t.Errorf("%v", err)
	}
}

func TestSlurmStatus(t *testing.T) {
	dir := programs(t, map[string]string{"squeue": `printf '%s\n' "$@" > "$FAKE/arguments"
cat <<END
12|PENDING|0:00||Priority
13|RUNNING|1-00:01:00|n[1-2]|None
14|TIMEOUT|1:00:00|n3|None
END
`})
	s := newSystem(t, provider.Settings{Kind: provider.Slurm})
	got, err := s.Status(t.Context(), []string{"12", "13", "14", "15"})
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	if got["12"].State != plan.OuterQueued || got["12"].Text != "PENDING (Priority)" {
		t.Errorf("%+v", got["12"])
	}
	r := got["13"]
	if ago := time.Since(r.Started); r.State != plan.OuterRunning || !slices.Equal(r.Hosts, []string{"n1", "n2"}) ||
		ago < 24*time.Hour+time.Minute || ago > 24*time.Hour+3*time.Minute {
		t.Errorf("%+v", r)
	}
	if got["14"].State != plan.OuterEnded {
		t.Errorf("%+v", got["14"])
	}
	if !strings.Contains(readFile(dir, "arguments"), "\n12,13,14,15\n") {
		t.Errorf("%q", readFile(dir, "arguments"))
	}
}

// TestSlurmUnknown checks the answers of squeue about jobs that it has forgotten, and
// those of a Slurm that is down.
func TestSlurmUnknown(t *testing.T) {
	programs(t, map[string]string{"squeue": "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1",
		"scancel": "echo 'scancel: error: Kill job error on job id 12: Invalid job id specified' >&2; exit 1"})
	s := newSystem(t, provider.Settings{Kind: provider.Slurm})
	if got, err := s.Status(t.Context(), []string{"12"}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if err := s.Cancel(t.Context(), []string{"12"}); err != nil {
		t.Errorf("%v", err)
	}
	programs(t, map[string]string{
		"squeue": "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"})
	if got, err := s.Status(t.Context(), []string{"12"}); err == nil {
		t.Errorf("an error is no answer: %v", got)
	}
}

func TestSlurmFind(t *testing.T) {
	programs(t, map[string]string{"squeue": "echo '12|rpother'; echo '13|rpkey'"})
	s := newSystem(t, provider.Settings{Kind: provider.Slurm})
	if id, err := s.Find(t.Context(), "rpkey"); id != "13" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := s.Find(t.Context(), "rpnone"); id != "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

func TestSlurmElapsed(t *testing.T) {
	for text, want := range map[string]time.Duration{"0:00": 0, "2:03": 123 * time.Second,
		"1:02:03": 3723 * time.Second, "2-00:00:01": 48*time.Hour + time.Second, "INVALID": 0, "": 0} {
		if got := slurmElapsed(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestPBS(t *testing.T) {
	dir := programs(t, map[string]string{"qsub": recordCall + "echo 77.server\n",
		"qstat": `echo 'qstat: Unknown Job Id 78.server' >&2
cat <<END
{"timestamp":1,"Jobs":{"77.server":{"job_state":"R","exec_host":"n1/0*4+n2/0*4",
"resources_used":{"walltime":"01:00:00"}},
"76.server":{"job_state":"Q","comment":"Not Running: Insufficient amount of resource"},
"75.server":{"job_state":"F","Exit_status":0}}}
END
exit 35
`,
		"qselect": "echo 77.server", "qdel": "echo 'qdel: Unknown Job Id 78.server' >&2; exit 170"})
	s := newSystem(t, provider.Settings{Kind: provider.PBS})
	id, err := s.Submit(t.Context(), testJob())
	if err != nil || id != "77.server" {
		t.Fatal(id, err)
	}
	args := readFile(dir, "arguments")
	for _, want := range []string{"select=2:ncpus=4:mem=8192mb", "walltime=5400", "place=scatter", "-N\nrpkey",
		"-r\nn"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %q in %q", want, args)
		}
	}
	got, err := s.Status(t.Context(), []string{"75.server", "76.server", "77.server", "78.server"})
	if err != nil || len(got) != 3 || got["77.server"].State != plan.OuterRunning ||
		got["76.server"].State != plan.OuterQueued || got["75.server"].State != plan.OuterEnded {
		t.Errorf("%+v, %v", got, err)
	}
	if r := got["77.server"]; !slices.Equal(r.Hosts, []string{"n1", "n2"}) || time.Since(r.Started) < time.Hour {
		t.Errorf("%+v", r)
	}
	if id, err := s.Find(t.Context(), "rpkey"); id != "77.server" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if err := s.Cancel(t.Context(), []string{"78.server"}); err != nil {
		t.Error(err)
	}
	programs(t, map[string]string{"qstat": "echo 'Connection refused' >&2; exit 1"})
	if got, err := s.Status(t.Context(), []string{"77.server"}); err == nil {
		t.Errorf("%v", got)
	}
}

func TestCondor(t *testing.T) {
	dir := programs(t, map[string]string{"condor_submit": recordCall + "echo '12.0 - 12.0'\n",
		"condor_q": `cat <<END
[{"ClusterId":12,"ProcId":0,"JobStatus":2,"RemoteHost":"slot1@n1","JobCurrentStartDate":1000,"ServerTime":1600},
{"ClusterId":13,"ProcId":0,"JobStatus":1},
{"ClusterId":14,"ProcId":0,"JobStatus":5,"HoldReason":"memory usage exceeded","HoldReasonCode":34},
{"ClusterId":15,"ProcId":0,"JobStatus":5,"HoldReason":"submitted on hold","HoldReasonCode":15}]
END
`})
	s := newSystem(t, provider.Settings{Kind: provider.Condor, Options: []string{"accounting_group = physics"}})
	job := testJob()
	if _, err := s.Submit(t.Context(), job); err == nil {
		t.Error("it took several nodes")
	}
	job.Nodes, job.Directory, job.Output = 1, dir, dir+"/out"
	id, err := s.Submit(t.Context(), job)
	if err != nil || id != "12.0" {
		t.Fatal(id, err)
	}
	input := readFile(dir, "input")
	for _, want := range []string{"executable = " + dir + "/rpkey.sh", `+RoostPilotKey = "rpkey"`, "request_cpus = 4",
		"accounting_group = physics\nqueue 1", `TARGET.Machine =!= "n1" && TARGET.Machine =!= "n2"`,
		"EnteredCurrentStatus > 5400"} {
		if !strings.Contains(input, want) {
			t.Errorf("no %q in %q", want, input)
		}
	}
	if readFile(dir, "rpkey.sh") != job.Script {
		t.Errorf("%q", readFile(dir, "rpkey.sh"))
	}
	got, err := s.Status(t.Context(), []string{"12.0", "13.0", "14.0", "15.0"})
	if err != nil || got["12.0"].State != plan.OuterRunning || !slices.Equal(got["12.0"].Hosts, []string{"n1"}) ||
		got["13.0"].State != plan.OuterQueued || got["14.0"].State != plan.OuterEnded || !got["14.0"].IsRemnant ||
		got["15.0"].State != plan.OuterQueued {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCommand(t *testing.T) {
	dir := programs(t, map[string]string{
		"my-submit": `cat > "$FAKE/input"; echo '{"id": "job-1"}'`,
		"my-status": `cat > "$FAKE/asked"
echo '{"jobs": {"job-1": {"state": "running", "hosts": ["h"], "running_seconds": 60}, "job-2": {"state": "ended"}}}'`,
		"my-cancel": `cat > /dev/null; echo '{"error": "not yours"}'`,
		"my-facts":  `cat > /dev/null; echo '{"id": "job-1"}'`})
	s := newSystem(t, provider.Settings{Kind: provider.Command, Programs: map[string][]string{
		"submit": {"my-submit"}, "status": {"my-status"}, "cancel": {"my-cancel"}, "facts": {"my-facts"}}})
	id, err := s.Submit(t.Context(), testJob())
	if err != nil || id != "job-1" {
		t.Fatal(id, err)
	}
	if got := readFile(dir, "input"); !strings.Contains(got, `"key":"rpkey"`) || !strings.Contains(got,
		`"walltime_seconds":5400`) || !strings.Contains(got, `"memory_bytes":8589934592`) {
		t.Errorf("%q", got)
	}
	got, err := s.Status(t.Context(), []string{"job-1", "job-2"})
	if err != nil || got["job-1"].State != plan.OuterRunning || got["job-2"].State != plan.OuterEnded {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Cancel(t.Context(), []string{"job-1"}); err == nil || !strings.Contains(err.Error(), "not yours") {
		t.Errorf("%v", err)
	}
	if id, err := s.Find(t.Context(), "rpkey"); id != "job-1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// TestVia checks that a command line in front of programs needs no second quoting.
func TestVia(t *testing.T) {
	programs(t, map[string]string{"far": `[ "$1" = -q ] && shift; shift; exec "$@"`})
	shell := Shell{Via: []string{"far", "-q", "host"}}
	got, err := shell.Run(t.Context(), "printf", "printf %s "+Quote("it's \"$HOME\" `x`"))
	if err != nil || got != "it's \"$HOME\" `x`" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir() + "/a b"
	shell := Shell{}
	if err := shell.WriteFile(t.Context(), dir, "token", "secret'\nROOST_END\n"); err != nil {
		t.Fatal(err)
	}
	if got := readFile(dir, "token"); got != "secret'\nROOST_END\n" {
		t.Errorf("%q", got)
	}
	out, err := shell.Run(t.Context(), "stat", "stat -c %a "+Quote(dir)+" "+Quote(dir+"/token"))
	if err != nil || strings.TrimSpace(out) != "700\n600" {
		t.Errorf("%q, %v", out, err)
	}
	t.Setenv("HOME", dir)
	if path, err := shell.ResolveDir(t.Context(), "~/x y"); path != dir+"/x y" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	if err := shell.RemoveFiles(t.Context(), dir, "token", "none"); err != nil || readFile(dir, "token") != "" {
		t.Errorf("%v", err)
	}
}

func TestGridEngine(t *testing.T) {
	dir := programs(t, map[string]string{"qsub": recordCall + "echo '7'\n",
		"qconf": `case $1 in -spl) echo mpi; echo smp;; -sp) case $2 in mpi) echo 'allocation_rule    $round_robin';;
*) echo 'allocation_rule    $pe_slots';; esac;; esac`,
		"qstat": `cat <<END
<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.example/qstat.xsd">
  <queue_info>
    <job_list state="running"><JB_job_number>7</JB_job_number><JB_name>rpkey</JB_name><state>r</state>
      <JAT_start_time>$(date -d '-1 hour' +%Y-%m-%dT%H:%M:%S)</JAT_start_time><queue_name>main.q@n1</queue_name></job_list>
  </queue_info>
  <job_info>
    <job_list state="pending"><JB_job_number>8</JB_job_number><JB_name>other</JB_name><state>qw</state>
      <queue_name></queue_name></job_list>
    <job_list state="pending"><JB_job_number>9</JB_job_number><JB_name>failed</JB_name><state>Eqw</state></job_list>
  </job_info>
</job_info>
END
`,
		"qacct": `[ "$2" = rpended ] && printf 'jobname  rpended\njobnumber    5\n'`,
		"qdel":  `echo 'denied: job "12" does not exist'; exit 1`})
	job := testJob()
	s := newSystem(t, provider.Settings{Kind: provider.GridEngine, Options: []string{"-P", "physics"}})
	if _, err := s.Submit(t.Context(), job); !errors.Is(err, roost.BadConfig) {
		t.Errorf("several nodes: %v", err)
	}
	job.Nodes = 1
	id, err := s.Submit(t.Context(), job)
	want := []string{"-terse", "-N", "rpkey", "-S", "/bin/sh", "-r", "n", "-m", "n", "-j", "y", "-o", "/tmp/rpkey.out",
		"-notify", "-l", "h_rt=5400", "-l", "mem_free=8192M", "-l", "hostname=!(n1|n2)", "-pe", "smp", "4", "-P",
		"physics"}
	if got := strings.Split(strings.TrimSpace(readFile(dir, "arguments")), "\n"); id != "7" || err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%q, %v: got %q, want %q", id, err, got, want)
	}
	if got := readFile(dir, "input"); got != job.Script {
		t.Errorf("got %q", got)
	}
	got, err := s.Status(t.Context(), []string{"7", "8", "9", "10"})
	if r := got["7"]; err != nil || len(got) != 3 || r.State != plan.OuterRunning || !slices.Equal(r.Hosts,
		[]string{"n1"}) || time.Since(r.Started).Round(time.Minute) != time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
	if got["8"].State != plan.OuterQueued || got["9"].State != plan.OuterEnded || !got["9"].IsRemnant {
		t.Errorf("%+v", got)
	}
	for key, want := range map[string]string{"rpkey": "7", "rpended": "5", "rpnone": ""} {
		if id, err := s.Find(t.Context(), key); id != want || err != nil {
			t.Errorf("find %s: %q, %v", key, id, err)
		}
	}
	if err := s.Cancel(t.Context(), []string{"12"}); err != nil {
		t.Error(err)
	}
	own := newSystem(t, provider.Settings{Kind: provider.GridEngine, Options: []string{"-pe", "mpi", "4"}})
	if _, err := own.Submit(t.Context(), job); err != nil || strings.Contains(readFile(dir, "arguments"), "smp") {
		t.Errorf("%v: %q", err, readFile(dir, "arguments"))
	}
	programs(t, map[string]string{"qstat": "echo 'error: commlib error: got select error'; exit 1"})
	if got, err := s.Status(t.Context(), []string{"7"}); err == nil {
		t.Errorf("%v", got)
	}
}
