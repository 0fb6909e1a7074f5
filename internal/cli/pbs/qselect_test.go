package pbs

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/wire"
)

// TestQselectConditions holds which jobs each condition of qselect lets through.
func TestQselectConditions(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &wire.JobStatus{
		Id: "7.n1", Name: "sim", Owner: "ann", Priority: 10, Queue: "long", State: "running", Tasks: 1, Attempt: 1,
		Node:      "n2",
		Submitted: now.Add(-2 * time.Hour).UnixNano(), Started: now.Add(-time.Hour).UnixNano(),
		Request: &wire.Resources{MilliCpu: 4000, Memory: 8 << 30},
		Ad:      `[AccountingGroup = "physics"; Walltime = 7200; DeferralTime = 1795262400; Checkpoint = true; CheckpointInterval = 600; Rerunnable = false]`,
	}
	for line, want := range map[string]bool{
		"": true, "-N sim": true, "-N si": false, "-u ann": true, "-u bob,ann@n9": true, "-u bob": false, "-p 10": true,
		"-p .gt.9": true, "-p .lt.10": false,
		"-A physics": true, "-P physics": true, "-A chemistry": false, "-q long": true, "-q short": false,
		"-q long@n1": true, "-s R": true, "-s QHW": false, "-s e,q,r,w,h,t": true,
		"-r n": true, "-r y": false, "-h n": true, "-h u": false, "-J": false,
		"-l ncpus=4": true, "-l ncpus.ge.4": true, "-l ncpus>4": false, "-l ncpus!=3,mem<=8gb": true,
		"-l mem.lt.8gb": false, "-l mem=8192mb": true, "-l mem.eq.8388608kb": true,
		"-l walltime.gt.1:59:59": true, "-l walltime=120:0": true, "-l walltime<7200": false, "-l ngpus.ge.0": false,
		"-l ncpus=4 -l walltime.ne.7200": false,
		"-t s.ge.1100":                   true, "-t s.lt.1100": false, "-t q11220959.59": false,
		"-t q.gt.202611220959.59": true,
		"-t m.le.1100":            true, "-t e.eq.1000": true, "-t c.lt.0959": false,
		"-a .lt.203001010000": true, "-a .gt.203001010000": false,
		"-c .ge.c=10": true, "-c n": false, "-c .gt.n": true, "-c u": false, "-c c=10": true, "-c .lt.c": true,
		"-u ann -N other": false, "-N other -N sim": true,
	} {
		a, _, _ := newPBSApp(t, t.TempDir())
		a.Now = func() time.Time { return now }
		w := &qselectFilter{Invocation: &frame.Invocation{App: a}}
		o, err := pbsframe.ParseOptions(strings.Fields(line), "a:A:c:h:HJl:N:p:P:q:r:s:t:Tu:x")
		if err != nil {
			t.Fatal(err)
		}
		if bad := w.readOptions(o); bad != nil {
			t.Errorf("%s: %v", line, bad)
			continue
		}
		if got := w.matches(s); got != want {
			t.Errorf("%s: got %v, want %v", line, got, want)
		}
	}
}

// TestQselectAccounts holds that accounts and projects differ where qsub was given both.
func TestQselectAccounts(t *testing.T) {
	s := &wire.JobStatus{Id: "7.n1", Tasks: 1, State: "idle",
		Ad: `[AccountingGroup = "acct"; PBS = [Account_Name = "acct"; project = "proj"]]`}
	for line, want := range map[string]bool{"-A acct": true, "-P acct": false, "-P proj": true, "-A proj": false,
		"-A acct -P proj": true} {
		a, _, _ := newPBSApp(t, t.TempDir())
		w := &qselectFilter{Invocation: &frame.Invocation{App: a}}
		o, _ := pbsframe.ParseOptions(strings.Fields(line), "A:P:")
		if bad := w.readOptions(o); bad != nil || w.matches(s) != want {
			t.Errorf("%s: %v, want %v (%v)", line, !want, want, bad)
		}
	}
}

// TestQselectRefuses holds that senseless values are refused in PBS's words, whatever the
// jobs are.
func TestQselectRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"-a soon": "illegal -a value", "-a .ge.": "illegal -a value", "-a 202613010000": "illegal -a value",
		"-c often": "illegal -c value", "-h x": "illegal -h value", "-h un": "illegal -h value",
		"-l ncpus": "illegal -l value", "-l =4": "illegal -l value", "-l ncpus=": "illegal -l value",
		"-l ncpus=x": "illegal -l value", "-l mem=lots": "illegal -l value",
		"-l walltime=1:2:3:4": "illegal -l value", "-l walltime=1:-2": "illegal -l value",
		"-l wings=2": "Unknown resource: wings",
		"-p high":    "illegal -p value", "-p 1024": "illegal -p value", "-q @": "illegal -q value",
		"-q a@b@c": "illegal -q value", "-r maybe": "illegal -r value", "-s RZ": "illegal -s value",
		"-s ,":     "illegal -s value",
		"-t x1200": "illegal -t value", "-t s": "illegal -t value", "-u ,ann": "illegal -u value",
		"-u @n1": "illegal -u value",
	} {
		a, _, _ := newPBSApp(t, t.TempDir())
		w := &qselectFilter{Invocation: &frame.Invocation{App: a}}
		o, err := pbsframe.ParseOptions(strings.Fields(line), "a:A:c:h:HJl:N:p:P:q:r:s:t:Tu:x")
		if err != nil {
			t.Fatal(err)
		}
		if bad := w.readOptions(o); bad == nil || bad.text != want {
			t.Errorf("%s: got %v, want %s", line, bad, want)
		}
	}
}
