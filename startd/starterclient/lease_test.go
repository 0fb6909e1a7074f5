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

// TestStoppedStarterEndsItsTask: with nobody else there and the starter stopped, a task
// is gone soon after its lease, and all that it has forked. The kernel lets the starter
// go on, which ends it as ever.
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

// TestHungStarterIsKilled: one that does not go on by SIGCONT is killed, and the task
// with it. Here it is traced by somebody who does not let it go on.
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
	if err := unix.PtraceSeize(pid); err != nil { // a stopped process that is traced does not go on by SIGCONT alone
		t.Fatal(err)
	}
	b.goneWithin(cookie, began.Add(lease), 8*time.Second)
}

// TestRenewalThatIsReadLate: what a stopped starter is told counts from when it was said.
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

// TestFrozenTaskEndsWithItsLease: a task that stands still ends with its lease, too, also
// in a freezer of version 1, in which nothing dies, and of which the starter was told
// nothing before it was stopped.
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

// stop stops the starter once it has done what it was told so far, as the answer to an
// order that it has carried out already shows, and returns its pid.
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

// goneWithin waits for the end of all processes with a mark, which comes neither before
// an instant nor long after it.
func (b *testStarter) goneWithin(cookie string, from time.Time, late time.Duration) {
	b.t.Helper()
	for len(alive(b.t, cookie)) > 0 {
		if time.Since(from) > late {
			b.t.Fatalf("processes %v are left %v after the end of the lease", alive(b.t, cookie), time.Since(from))
		}
		unix.Poll(nil, 10)
	}
	if early := time.Until(from); early > 50*time.Millisecond {
		b.t.Errorf("gone %v before the end of the lease", early)
	}
}
