package records

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// now is the time of these tests.
func now() *Clock {
	return &Clock{Now: time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC), Zone: time.UTC}
}

// ago is a time before now, in unix nanoseconds.
func ago(d time.Duration) int64 { return now().Now.Add(-d).UnixNano() }

const testAd = `[ Walltime = 7200; MaxRunning = 2; AccountingGroup = "physics"; Iwd = "/home/ann"; ` +
	`Out = "out.txt"; ` +
	`Cmd = "/bin/true"; OwnerUid = 1000; OwnerGid = 100; UnixGroup = "users" ]`

func runningJob() *scheddapi.JobStatus {
	return &scheddapi.JobStatus{Id: "12.n1", Name: "a job", Owner: "ann", State: "running", Tasks: 1, Queue: "main",
		Submitted: ago(2 * time.Hour), Eligible: ago(2 * time.Hour), Started: ago(65 * time.Minute), Node: "n1.vm",
		Attempt: 1, Ad: testAd, Request: &scheddapi.Resources{MilliCpu: 1500, Memory: 4 << 30, Gpus: 1}}
}

func waitingArray() *scheddapi.JobStatus {
	return &scheddapi.JobStatus{Id: "13.n1", Name: "arr", Owner: "bob", Array: true, Tasks: 6, Remaining: "2-5",
		Counts: map[string]uint32{"running": 1, "completed": 1, "idle": 4}, Brief: "wait 1/1: all 2 nodes busy",
		Submitted: ago(time.Minute), Ad: testAd, Request: &scheddapi.Resources{MilliCpu: 1000}}
}

func arrayTask() *scheddapi.JobStatus {
	s := waitingArray()
	s.Id, s.State, s.Index, s.Started, s.Node = "13[1].n1", "running", 1, ago(time.Minute), "n2"
	return s
}

// ended is a job that ended in some way.
func ended(state string, exit *scheddapi.ExitStatus) *scheddapi.JobStatus {
	s := runningJob()
	s.State, s.Exit, s.Ended = state, exit, ago(time.Minute)
	return s
}

func TestDefaultFormat(t *testing.T) {
	f, unknown := ParseFormat(DefaultFormat)
	if len(unknown) > 0 {
		t.Fatal(unknown)
	}
	var lines []string
	lines = append(lines, f.Titles())
	for _, s := range []*scheddapi.JobStatus{runningJob(), waitingArray(), arrayTask()} {
		lines = append(lines, f.Line(NewJob(s), now()))
	}
	want := "" +
		"             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n" +
		"                12      main    a job      ann  R    1:05:00      1 n1.vm\n" +
		"        13_[2-5%2]     batch      arr      bob PD       0:00      1 (Resources)\n" +
		"              13_1     batch      arr      bob  R       1:00      1 n2"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ format, want string }{
		{"%i %t", "12 R"}, {"%i^^^%t^^^%r", "12^^^R^^^None"},
		{"%A|%r", "12|None"}, {"%.3j|%3j|%9j|", "a j|a j|a job    |"},
		{"%T %B", "RUNNING n1.vm"}, {"%M %L %l", "1:05:00 55:00 2:00:00"}, {"%C %m %b", "2 4G gres/gpu:1"},
		{"%S %e", "2026-11-23T02:55:00 2026-11-23T04:55:00"}, {"%U %g %a", "1000 users physics"}, {"x", "x"},
		{"%Z %o", "/home/ann /bin/true"},
	} {
		f, unknown := ParseFormat(c.format)
		if got := f.Line(NewJob(runningJob()), now()); got != c.want || len(unknown) > 0 {
			t.Errorf("%s: %q, want %q (%v)", c.format, got, c.want, unknown)
		}
	}
	for _, c := range []struct{ format, want string }{
		{"JobID:5,StateCompact:.3", "12     R"},
		{"JobArrayID:9,StateCompact,Reason", "12       R                   None                "},
		{"WorkDir:\x1f,STDOUT:|", "/home/ann\x1f/home/ann/out.txt|"},
	} {
		f, err := ParseNames(c.format)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Line(NewJob(runningJob()), now()); got != c.want {
			t.Errorf("%s: %q, want %q", c.format, got, c.want)
		}
	}
	if _, err := ParseNames("NoSuch"); err == nil {
		t.Error("a field that there is not is listed")
	}
	if _, unknown := ParseFormat("%i %?"); len(unknown) != 1 {
		t.Error(unknown)
	}
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		s                   *scheddapi.JobStatus
		state, reason, code string
	}{
		{ended("completed", &scheddapi.ExitStatus{}), "CD", "None", "0:0"},
		{ended("completed", &scheddapi.ExitStatus{Code: 3}), "F", "NonZeroExitCode", "3:0"},
		{ended("completed", &scheddapi.ExitStatus{Signal: 9}), "F", "RaisedSignal:9(Killed)", "0:9"},
		{ended("completed", &scheddapi.ExitStatus{Signal: 15, Cause: scheddapi.Cause_CAUSE_WALLTIME}),
			"TO", "TimeLimit", "0:15"},
		{ended("completed", &scheddapi.ExitStatus{Signal: 9, Cause: scheddapi.Cause_CAUSE_MEMORY}),
			"OOM", "OutOfMemory", "0:9"},
		{ended("removed", &scheddapi.ExitStatus{Signal: 15}), "CA", "None", "0:15"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "held", Tasks: 1}, "PD", "JobHeldUser", "0:0"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "held", Locked: true, Tasks: 1}, "PD", "JobHeldAdmin", "0:0"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "blocked", Tasks: 1}, "PD", "Dependency", "0:0"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "blocked", Timed: true, Tasks: 1}, "PD", "BeginTime", "0:0"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "idle", Tasks: 1}, "PD", "Priority", "0:0"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "starting", Tasks: 1}, "CF", "None", "0:0"},
		{&scheddapi.JobStatus{Id: "1.n1", State: "suspended", Tasks: 1}, "S", "None", "0:0"},
	} {
		j := NewJob(c.s)
		d := j.exitDocument()
		code := strings.Fields(j.Show(now(), true))
		got := ""
		for _, word := range code {
			if text, ok := strings.CutPrefix(word, "ExitCode="); ok {
				got = text
			}
		}
		if j.ShortState() != c.state || j.Reason() != c.reason || got != c.code || len(d.Status) != 1 {
			t.Errorf("%v: %s %s %s, want %s %s %s", c.s, j.ShortState(), j.Reason(), got, c.state, c.reason, c.code)
		}
	}
}

func TestShow(t *testing.T) {
	want := `JobId=12 JobName=a job
   UserId=ann(1000) GroupId=users(100) MCS_label=N/A
   Priority=10000 Nice=0 Account=physics QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=01:05:00 TimeLimit=02:00:00 TimeMin=N/A
   SubmitTime=2026-11-23T02:00:00 EligibleTime=2026-11-23T02:00:00
   AccrueTime=2026-11-23T02:00:00
   StartTime=2026-11-23T02:55:00 EndTime=2026-11-23T04:55:00 Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-23T02:00:00 Scheduler=Main
   Partition=main AllocNode:Sid=n1:0
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n1.vm
   BatchHost=n1.vm
   NumNodes=1 NumCPUs=2 NumTasks=1 CPUs/Task=2 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=2,mem=4G,node=1,billing=2,gres/gpu=1
   AllocTRES=cpu=2,mem=4G,node=1,billing=2,gres/gpu=1
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=2 MinMemoryNode=4G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/bin/true
   WorkDir=/home/ann
   StdErr=/home/ann/out.txt
   StdIn=/dev/null
   StdOut=/home/ann/out.txt
   TresPerNode=gres/gpu:1

`
	if got := NewJob(runningJob()).Show(now(), false); got != want {
		t.Errorf("\n%s", got)
	}
	if got := NewJob(waitingArray()).Show(now(), true); !strings.HasPrefix(got,
		"JobId=13 ArrayJobId=13 ArrayTaskId=2-5%2 ArrayTaskThrottle=2 JobName=arr ") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
}

func TestDocument(t *testing.T) {
	for _, s := range []*scheddapi.JobStatus{runningJob(), waitingArray(), ended("removed", nil)} {
		text, err := NewJob(s).MarshalJob(now())
		if err != nil {
			t.Fatal(err)
		}
		var d map[string]any
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if len(d) < 40 {
			t.Errorf("it has %d fields", len(d))
		}
		waits := d["job_state"].([]any)[0] == "PENDING"
		if waits != (d["job_resources"] == nil) {
			t.Errorf("%v has %v", d["job_state"], d["job_resources"])
		}
		if limit := d["time_limit"].(map[string]any); limit["number"] != 120.0 || limit["set"] != true {
			t.Error(limit)
		}
	}
}

func TestTimes(t *testing.T) {
	c := now()
	at := c.Now.Add(time.Hour)
	for format, want := range map[string]string{"": "2026-11-23T05:00:00", "%s": "1795410000", "relative": "05:00:00",
		"%Y/%m/%d %H%%": "2026/11/23 05%"} {
		c.Format = format
		if got := c.Time(at, ""); got != want {
			t.Errorf("%q: %s, want %s", format, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0:00", 5 * time.Minute: "5:00",
		26*time.Hour + 3*time.Minute + 4*time.Second: "1-02:03:04"} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestSort(t *testing.T) {
	jobs := []*Job{NewJob(runningJob()), NewJob(arrayTask()), NewJob(waitingArray())}
	for order, want := range map[string]string{"t,i": "13_[2-5%2] 12 13_1", "-M": "12 13_1 13_[2-5%2]",
		"u,-t": "12 13_1 13_[2-5%2]"} {
		if err := Sort(jobs, order, now()); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID())
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
	}
	if Sort(jobs, "?", now()) == nil {
		t.Error("an order by nothing is taken")
	}
}

// FuzzParseFormat looks that formats never fail and never break a line.
func FuzzParseFormat(f *testing.F) {
	f.Add("%.18i %j", "a b")
	f.Add("JobID:5,Name:\x1f", "a\nb")
	f.Fuzz(func(t *testing.T, format, name string) {
		s := runningJob()
		s.Name = name
		j := NewJob(s)
		short, _ := ParseFormat(format)
		long, _ := ParseNames(format)
		for _, g := range []Format{short, long} {
			if strings.Count(g.Line(j, now()), "\n") > strings.Count(format, "\n") {
				t.Errorf("%q of %q breaks its line", format, name)
			}
		}
	})
}
