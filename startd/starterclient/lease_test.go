package starterclient_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// TestStoppedStarterEndsItsTask checks that a task ends soon after its lease although its
// starter is stopped. All its descendants must end, too. The kernel resumes the starter,
// which ends the task as usual.
func TestStoppedStarterEndsItsTask(t *testing.T) { runBothWays(t, testStoppedStarterEndsItsTask) }

func testStoppedStarterEndsItsTask(t *testing.T) {
	const lease = 700 * time.Millisecond
	b := spawn(t, time.Minute)
	o, cookie := markedCmd(t, 1, "trap '' TERM; echo ready; setsid sleep 60 & sleep 60 & sleep 60")
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.RenewLease(lease)
	began := time.Now()
	b.stop(o)
	b.goneWithin(cookie, began.Add(lease), 3*time.Second)
	if exit := b.end(); exit.Cause != proto.LeaseOver {
		t.Errorf("got %+v, want an end by the lease", exit)
	}
}

// TestHungStarterIsKilled checks that a starter that does not resume with SIGCONT is
// killed. Its task must end with it. Here a tracer keeps it stopped.
func TestHungStarterIsKilled(t *testing.T) {
	t.Parallel()
	runBothWays(t, testHungStarterIsKilled)
}

func testHungStarterIsKilled(t *testing.T) {
	const lease = 700 * time.Millisecond
	b := spawn(t, time.Minute)
	o, cookie := markedCmd(t, 1, "trap '' TERM; echo ready; exec sleep 60")
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.RenewLease(lease)
	began := time.Now()
	pid := b.stop(o)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil { // SIGCONT alone does not resume a traced process
		t.Fatal(err)
	}
	b.goneWithin(cookie, began.Add(lease), 8*time.Second)
}

// TestRenewalThatIsReadLate checks that a renewal counts from when it was sent to a
// stopped starter.
func TestRenewalThatIsReadLate(t *testing.T) {
	const lease = 1500 * time.Millisecond
	b := spawn(t, time.Minute)
	o, cookie := markedCmd(t, 1, "trap '' TERM; echo ready; exec sleep 60")
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.RenewLease(lease)
	began := time.Now()
	pid := b.stop(o)
	b.RenewLease(lease)
	for time.Since(began) < lease-300*time.Millisecond {
		unix.Poll(nil, 10)
	}
	unix.Kill(pid, unix.SIGCONT)
	b.goneWithin(cookie, began.Add(lease), time.Second)
}

// TestFrozenTaskEndsWithItsLease checks that a frozen task ends with its lease as well.
// This includes a version 1 freezer, in which nothing dies, and of which the starter was
// not informed before it was stopped.
func TestFrozenTaskEndsWithItsLease(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root makes groups")
			}
			var b *testStarter
			var freeze func()
			if version == 1 {
				var dir string
				b, dir = newFreezerStarter(t)
				freeze = func() { freezeVersion1(t, dir) }
			} else {
				var group *cgroup.ClaimGroup
				b, group = newGroupedStarter(t)
				freeze = func() {
					if err := group.Freeze(); err != nil {
						t.Fatal(err)
					}
				}
			}
			const lease = 700 * time.Millisecond
			o, cookie := markedCmd(t, 1, "echo ready; while :; do sleep 0.01; done")
			b.begin(o)
			b.waitFor(o.Attempt, "ready")
			freeze()
			b.RenewLease(lease)
			began := time.Now()
			b.stop(o)
			b.goneWithin(cookie, began.Add(lease), 3*time.Second)
			if exit := b.end(); exit.Cause != proto.LeaseOver {
				t.Errorf("got %+v, want an end by the lease", exit)
			}
		})
	}
}

// stop stops the starter and returns its pid. The answer to a repeated command shows that
// it has executed all commands so far.
func (b *testStarter) stop(done starterclient.StartCmd) int {
	b.t.Helper()
	pid := b.PID()
	b.begin(done)
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { unix.Kill(pid, unix.SIGCONT) })
	return pid
}

// goneWithin waits for the end of all processes with a mark. They must not end before an
// instant, nor long after it.
func (b *testStarter) goneWithin(cookie string, from time.Time, late time.Duration) {
	b.t.Helper()
	// a process that executes a program has no environment for a moment, and seems gone
	for absences := 0; absences < 2; absences++ {
		if len(alive(b.t, cookie)) == 0 {
			continue
		}
		absences = -1
		if time.Since(from) > late {
			b.t.Fatalf("processes %v are left %v after the end of the lease", alive(b.t, cookie), time.Since(from))
		}
		unix.Poll(nil, 10)
	}
	if early := time.Until(from); early > 50*time.Millisecond {
		b.t.Errorf("gone %v before the end of the lease", early)
	}
}
