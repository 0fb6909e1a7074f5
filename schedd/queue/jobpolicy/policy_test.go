package jobpolicy

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

func judgeOf(t *testing.T, src string) *Judge {
	t.Helper()
	ad, err := classad.Parse("[" + src + "]")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Read(ad)
	if err != nil {
		t.Fatal(err)
	}
	return p.Judge(ad, time.Unix(1_700_000_000, 0))
}

// TestFacts evaluates a condition on each attribute that roost-job(5) names.
func TestFacts(t *testing.T) {
	f := Facts{Job: 7, Index: 2, State: roost.Running, Submitted: 1e18, Entered: 2e18, Started: 3e18, Attempts: 4,
		Completions: 1, Holds: 3, RunTime: 90e9, Live: true, Exit: &Exit{User: 5e9, Peak: 3 << 20}}
	ended := Facts{State: roost.Completed, Exit: &Exit{Code: 6, MaxRSS: 1, Disk: 2048}}
	killed := Facts{State: roost.Completed, Exit: &Exit{Signal: 9, Core: true}}
	held := Facts{State: roost.Held, HoldReason: "why", HeldByUser: true}
	for condition, of := range map[string]Facts{
		"ClusterId == 7 && ProcId == 2 && JobStatus == 2":                            f,
		"QDate == 1000000000 && EnteredCurrentStatus == 2000000000":                  f,
		"NumJobStarts == 4 && NumJobCompletions == 1 && NumHolds == 3":               f,
		"JobStartDate == 3000000000 && RemoteWallClockTime == 90":                    f,
		"RemoteUserCpu == 5 && MemoryUsage == 3 && ExitCode =?= undefined":           f,
		"HoldReason =?= undefined && CurrentTime == time()":                          f,
		"ExitCode == 6 && !ExitBySignal && MemoryUsage == 1 && DiskUsage == 2":       ended,
		"ExitBySignal && ExitSignal == 9 && JobCoreDumped && ExitCode =?= undefined": killed,
		`HoldReason == "why" && HoldReasonCode == 1 && JobStatus == 5`:               held,
		`Word == "text" && Count + 1 == 5`:                                           f,
	} {
		j := judgeOf(t, `Labels = [Word = "text"; Count = "4"]; PeriodicRemove = `+condition)
		j.Periodic(f) // what one task has is not left for the next
		j.Periodic(ended)
		j.Periodic(killed)
		j.Periodic(held)
		if v := j.Periodic(of); v.Action != Remove || !strings.HasPrefix(v.Reason, "periodic_remove: ") {
			t.Errorf("%s: got %+v", condition, v)
		}
	}
}

// TestHostileConditions evaluates conditions that would take long, or much memory.
func TestHostileConditions(t *testing.T) {
	grow := `a0 = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; `
	for i := range 30 {
		grow += strings.NewReplacer("N", string(rune('a'+i%26))+"x"+strings.Repeat("i", i), "P",
			previous(i)).Replace("N = strcat(P, P); ")
	}
	grow += "PeriodicHold = size(" + previous(30) + ") > 0"
	for src, want := range map[string]Action{
		grow: NoAction, // it is an error
		"PeriodicHold = " + strings.Repeat("(", 500) + "false" + strings.Repeat(" || PeriodicHold)", 500): NoAction,
		"PeriodicHold = " + strings.Repeat("1 + ", 3000) + "1 > 0":                                        NoAction,
		"PeriodicHold = " + strings.Repeat("1 + ", 300) + "1 > 0":                                         Hold,
		"b = c; c = b; PeriodicHold = b":                                                                  NoAction,
	} {
		if v := judgeOf(t, src).Periodic(Facts{State: roost.Idle}); v.Action != want {
			t.Errorf("%.60s…: got action %v, want %v", src, v.Action, want)
		}
	}
}

// previous names the attribute before number i of those that grow.
func previous(i int) string {
	if i == 0 {
		return "a0"
	}
	return string(rune('a'+(i-1)%26)) + "x" + strings.Repeat("i", i-1)
}
