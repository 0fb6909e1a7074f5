package starter_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// grows reports whether a file that a task writes to gets longer within a while.
func (b *bench) grows(o proto.Attempt) bool {
	before := len(b.read(o, false))
	unix.Poll(nil, 60)
	return len(b.read(o, false)) > before
}

// TestHold: without groups a starter stops its task for the owner of the machine, and for whoever suspends it: it goes on when neither wants it to
// stand still. Its walltime does not run meanwhile, its lease does.
func TestHold(t *testing.T) {
	t.Parallel()
	both(t, testHold)
}

func testHold(t *testing.T) {
	b := spawn(t, time.Minute)
	o := order(1, "echo ready; while :; do sleep 0.005; echo on; done")
	o.Walltime = int64(1500 * time.Millisecond)
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	await := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); b.grows(o.Attempt) != want; {
			if time.Now().After(deadline) {
				t.Fatalf("it goes on: %v", !want)
			}
		}
	}
	for _, step := range []struct {
		hold, suspend bool
	}{{true, false}, {true, true}, {false, true}, {true, true}, {true, false}, {false, false}, {false, true}, {true, true}} {
		b.Hold(step.hold)
		if step.suspend {
			b.Suspend(o.Attempt)
		} else {
			b.Resume(o.Attempt)
		}
		await(!step.hold && !step.suspend)
	}
	unix.Poll(nil, 1600) // longer than its walltime
	if !strings.HasPrefix(status(t, b), "running") {
		t.Fatal("it ended while it stood still")
	}
	b.Hold(false)
	b.Resume(o.Attempt)
	if exit := b.end(); exit.Cause != proto.Walltime {
		t.Errorf("got %+v, want an end by walltime", exit)
	}
	b.Forget(o.Attempt)
	o.Attempt.Number, o.Walltime, o.Lease = 2, 0, int64(700*time.Millisecond)
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.Hold(true)
	await(false)
	if exit := b.end(); exit.Cause != proto.Lease {
		t.Errorf("got %+v, want an end by its lease", exit)
	}
}

// status is what the starter says of itself to one who adopts it; the bench goes on with that.
func status(t *testing.T, b *bench) string {
	next, state := adopt(t, b.dir)
	b.Starter, b.events = next.Starter, next.events
	return state.Phase.String()
}

// TestExpendable: the kernel takes the task before the starter, and that is as it was.
func TestExpendable(t *testing.T) { both(t, testExpendable) }

func testExpendable(t *testing.T) {
	b := spawn(t, time.Minute)
	before := score(t, b.PID())
	o := order(1, "cat /proc/self/oom_score_adj; (cat /proc/self/oom_score_adj)")
	o.Expendable = 800
	b.begin(o)
	b.end()
	if got := strings.Fields(b.read(o.Attempt, false)); len(got) != 2 || got[0] != "800" || got[1] != "800" {
		t.Errorf("task: got %q, want 800", got)
	}
	if got := score(t, b.PID()); got != before {
		t.Errorf("starter: got %s, want %s as before", got, before)
	}
}

func score(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
