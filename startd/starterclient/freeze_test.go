package starterclient_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// fileGrows reports whether the output file of a task grows within a short time.
func (b *testStarter) fileGrows(o proto.TaskAttempt) bool {
	before := len(b.read(o, false))
	unix.Poll(nil, 60)
	return len(b.read(o, false)) > before
}

// TestHold checks freezing and suspension without cgroups. The task must run only when
// neither the machine owner nor a user stops it. Its walltime must pause meanwhile, but
// not its lease.
func TestHold(t *testing.T) {
	t.Parallel()
	runBothWays(t, testHeldTask)
}

func testHeldTask(t *testing.T) {
	b := spawn(t, time.Minute)
	o := shellCmd(1, "echo ready; while :; do sleep 0.005; echo on; done")
	o.Walltime = int64(1500 * time.Millisecond)
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	await := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); b.fileGrows(o.Attempt) != want; {
			if time.Now().After(deadline) {
				t.Fatalf("it goes on: %v", !want)
			}
		}
	}
	for _, step := range []struct {
		hold, suspend bool
	}{{true, false}, {true, true}, {false, true}, {true, true}, {true, false}, {false, false}, {false, true},
		{true, true}} {
		b.SetFrozen(step.hold)
		if step.suspend {
			b.Suspend(o.Attempt)
		} else {
			b.Resume(o.Attempt)
		}
		await(!step.hold && !step.suspend)
	}
	unix.Poll(nil, 1600) // longer than its walltime
	if !strings.HasPrefix(starterState(t, b), "running") {
		t.Fatal("it ended while it stood still")
	}
	b.SetFrozen(false)
	b.Resume(o.Attempt)
	if exit := b.end(); exit.Cause != proto.Walltime {
		t.Errorf("got %+v, want an end by walltime", exit)
	}
	b.DiscardAttempt(o.Attempt)
	o.Attempt.Number, o.Walltime, o.Lease = 2, 0, int64(700*time.Millisecond)
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.SetFrozen(true)
	await(false)
	if exit := b.end(); exit.Cause != proto.LeaseOver {
		t.Errorf("got %+v, want an end by its lease", exit)
	}
}

// starterState returns the state that a starter reports to a client that adopts it. The
// test continues with that client.
func starterState(t *testing.T, b *testStarter) string {
	next, state := adoptStarter(t, b.dir)
	b.Starter, b.events = next.Starter, next.events
	return state.Phase.String()
}

// TestExpendable checks that the kernel kills the task before the starter. The starter's
// own score must be unchanged.
func TestExpendable(t *testing.T) { runBothWays(t, testOOMScore) }

func testOOMScore(t *testing.T) {
	b := spawn(t, time.Minute)
	before := oomScore(t, b.PID())
	o := shellCmd(1, "cat /proc/self/oom_score_adj; (cat /proc/self/oom_score_adj)")
	o.OOMScore = 800
	b.begin(o)
	b.end()
	if got := strings.Fields(b.read(o.Attempt, false)); len(got) != 2 || got[0] != "800" || got[1] != "800" {
		t.Errorf("task: got %q, want 800", got)
	}
	if got := oomScore(t, b.PID()); got != before {
		t.Errorf("starter: got %s, want %s as before", got, before)
	}
}

func oomScore(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
