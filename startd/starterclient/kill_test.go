package starterclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// markedCmd returns a command whose processes alive can count.
func markedCmd(t testing.TB, number uint32, script string) (starterclient.StartCmd, string) {
	cookie := fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), number)
	o := shellCmd(number, script)
	o.Environment = append(o.Environment, starterclient.CookieEnvVar+"="+cookie)
	return o, cookie
}

func alive(t testing.TB, cookie string) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		environ, _ := os.ReadFile(path)
		if strings.Contains(string(environ), starterclient.CookieEnvVar+"="+cookie+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitFor waits until a task has written the word.
func (b *testStarter) waitFor(a starterclient.TaskAttempt, word string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); unix.Poll(nil, 5) {
		if strings.Contains(b.read(a, false), word) {
			return
		}
	}
	b.t.Fatalf("the task did not say %q", word)
}

func TestNothingIsLeftBehind(t *testing.T) { runBothWays(t, testNothingIsLeftBehind) }

func testNothingIsLeftBehind(t *testing.T) {
	for _, test := range []struct{ name, script string }{
		{"background", "sleep 60 & sleep 60 &"},
		{"daemon", "(setsid sh -c 'sleep 60 & sleep 60' >/dev/null 2>&1 &) ; exit 3"},
		{"double fork", "( ( sleep 60 & ) & ) ; (setsid setsid sleep 60 &)"},
		{"deaf", "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' &"},
		{"stopped", "sleep 60 & kill -STOP $!"},
		{"bomb", "i=0; while [ $i -lt 200 ]; do (setsid sleep 60 &) ; i=$((i+1)); done"},
		{"growing", "f() { [ $1 -gt 7 ] && sleep 60; f $(($1+1)) & f $(($1+1)) & wait; }; f 1 & sleep 0.05"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := spawn(t, time.Minute)
			o, cookie := markedCmd(t, 1, test.script)
			b.begin(o)
			exit := b.end()
			if left := alive(t, cookie); len(left) > 0 {
				t.Errorf("processes %v are left after %+v", left, exit)
			}
		})
	}
}

func TestVacate(t *testing.T) { runBothWays(t, testVacate) }

func testVacate(t *testing.T) {
	notice := int64(300 * time.Millisecond)
	for _, test := range []struct {
		name, script string
		stop         starterclient.StopCmd
		code, signal int32
	}{
		{"gives in", "echo ready; while :; do sleep 0.1; done",
			starterclient.StopCmd{Notice: int64(time.Minute)}, 0, 15},
		{"cleans up", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done",
			starterclient.StopCmd{Notice: int64(time.Minute)}, 5, 0},
		{"deaf", "trap '' TERM; echo ready; while :; do sleep 0.1; done", starterclient.StopCmd{Notice: notice}, 0, 9},
		{"at once", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done",
			starterclient.StopCmd{Fast: true}, 0, 9},
		{"stopped", "trap 'exit 6' TERM; echo ready; kill -STOP $$; sleep 60",
			starterclient.StopCmd{Notice: int64(time.Minute)}, 6, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := spawn(t, time.Minute)
			o := shellCmd(1, test.script)
			b.begin(o)
			b.waitFor(o.Attempt, "ready")
			test.stop.Attempt, test.stop.Cause, test.stop.Reason = o.Attempt, proto.Vacated, "drained"
			b.Vacate(test.stop)
			exit := b.end()
			if exit.Code != test.code || exit.Signal != test.signal || exit.Cause != proto.Vacated ||
				exit.Reason != "drained" {
				t.Errorf("got %+v, want code %d signal %d", exit, test.code, test.signal)
			}
		})
	}
}

func TestWalltime(t *testing.T) { runBothWays(t, testWalltime) }

func testWalltime(t *testing.T) {
	b := spawn(t, time.Minute)
	o := shellCmd(1, "trap 'exit 5' TERM; while :; do sleep 0.05; done")
	o.Walltime, o.Notice = int64(200*time.Millisecond), int64(time.Minute)
	b.begin(o)
	exit := b.end()
	if exit.Code != 5 || exit.Cause != proto.Walltime || exit.Reason != "walltime of 200ms exceeded" {
		t.Errorf("got %+v, want an end by walltime", exit)
	}
	if exit.Wall < o.Walltime || exit.Wall > o.Walltime+int64(5*time.Second) {
		t.Errorf("wall time %v, want a little over 200ms", time.Duration(exit.Wall))
	}
}

// TestLimit changes the walltime of a running task: a shorter one, an expired one, a
// longer one, and none.
func TestLimit(t *testing.T) { runBothWays(t, testLimit) }

func testLimit(t *testing.T) {
	b := spawn(t, time.Minute)
	o := shellCmd(1, "echo ready; while :; do sleep 0.05; done")
	for _, c := range []struct {
		first, then time.Duration
	}{{time.Hour, 100 * time.Millisecond}, {0, 100 * time.Millisecond},
		{400 * time.Millisecond, 700 * time.Millisecond}} {
		o.Walltime, o.Notice = int64(c.first), 0
		b.begin(o)
		other := o.Attempt
		other.Number += 7
		b.SetWalltime(other, time.Nanosecond, "another's")
		b.SetWalltime(o.Attempt, c.then, "it was shortened")
		exit := b.end()
		if exit.Cause != proto.Walltime || exit.Reason != "it was shortened" || exit.Wall < int64(c.then) {
			t.Errorf("%v, then %v: got %+v", c.first, c.then, exit)
		}
		b.DiscardAttempt(o.Attempt)
		o.Attempt.Number++
	}
	o.Walltime = int64(300 * time.Millisecond)
	b.begin(o)
	b.SetWalltime(o.Attempt, 0, "")
	unix.Poll(nil, 400)
	b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Cause: proto.Removed, Fast: true})
	if exit := b.end(); exit.Cause != proto.Removed {
		t.Errorf("it has no walltime any more: got %+v", exit)
	}
}

func TestSuspendAndSignal(t *testing.T) { runBothWays(t, testSuspendAndSignal) }

func testSuspendAndSignal(t *testing.T) {
	b := spawn(t, time.Minute)
	o, cookie := markedCmd(t, 1, "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done")
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	pid := slices.Min(alive(t, cookie)) // the shell
	b.Suspend(o.Attempt)
	for deadline := time.Now().Add(time.Minute); ; unix.Poll(nil, 5) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// D: the shell waits for a stopped child to exec
		if strings.Contains(string(stat), ") T ") || strings.Contains(string(stat), ") D ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not stopped: %s", stat)
		}
	}
	b.Resume(o.Attempt)
	b.Signal(o.Attempt, syscall.SIGCONT)
	b.SignalAll(o.Attempt, syscall.SIGUSR1)
	b.waitFor(o.Attempt, "usr1")
	b.Start(o)
	b.next()
	o2 := shellCmd(1, "")
	b.Vacate(starterclient.StopCmd{Attempt: o2.Attempt, Fast: true, Cause: proto.Removed})
	if exit := b.end(); exit.Signal != 9 {
		t.Errorf("got %+v", exit)
	}
}

func TestUsageOfAllProcesses(t *testing.T) { runBothWays(t, testUsageOfAllProcesses) }

func testUsageOfAllProcesses(t *testing.T) {
	b := spawn(t, time.Minute)
	o := shellCmd(1, "(setsid sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done' &) ; sleep 0.01; "+
		"while ! grep -q done /proc/self/fd/1; do sleep 0.05; done")
	o.Stdout = filepath.Join(t.TempDir(), "out")
	o.Executable, o.Arguments[2] = "/bin/sh", strings.ReplaceAll(o.Arguments[2], "/proc/self/fd/1", o.Stdout)
	b.begin(o)
	exit := b.end()
	if exit.UserCPU+exit.SystemCPU < int64(20*time.Millisecond) || exit.MaxRSS < 100<<10 {
		t.Errorf("got %v user, %v system, %d bytes: the orphan's share is missing", time.Duration(exit.UserCPU),
			time.Duration(exit.SystemCPU), exit.MaxRSS)
	}
}

// TestSignalAmongExits signals tasks whose processes have children that exit all the
// time. Each process that was there before the signal gets it.
func TestSignalAmongExits(t *testing.T) { runBothWays(t, testSignalAmongExits) }

func testSignalAmongExits(t *testing.T) {
	const listeners, rounds = 6, 10
	b := spawn(t, time.Minute)
	out := filepath.Join(t.TempDir(), "out")
	// Between two listeners each there is a child that exits. A listener writes when its
	// trap is over: bash forgets a signal that comes within a trap for the same signal.
	o, _ := markedCmd(t, 1, fmt.Sprintf(`trap : USR1
listen() { trap heard=1 USR1; echo ready >> %[2]s
while :; do sleep 0.1 & wait $!; if [ "$heard" ]; then heard=; echo heard >> %[2]s; fi; done; }
for i in $(seq %[1]d); do (sleep 0.0$i) & listen 2>/dev/null & done
while :; do (sleep 0.002) & wait $!; done`, listeners, out))
	o.Executable = "/bin/bash"
	b.begin(o)
	awaitWords(t, out, "ready", listeners)
	for n := range rounds {
		b.SignalAll(o.Attempt, syscall.SIGUSR1)
		awaitWords(t, out, "heard", (n+1)*listeners)
	}
	b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Fast: true, Cause: proto.Removed})
	b.end()
}

// TestSignalSparesHandlers sends a task a signal whose handler runs a command. The
// signal is not for that, though it goes to many others meanwhile.
func TestSignalSparesHandlers(t *testing.T) { runBothWays(t, testSignalSparesHandlers) }

func testSignalSparesHandlers(t *testing.T) {
	const others, rounds = 150, 5
	b := spawn(t, time.Minute)
	out := filepath.Join(t.TempDir(), "out")
	o, _ := markedCmd(t, 1, fmt.Sprintf(`for i in $(seq %[1]d); do (trap "" HUP; exec sleep 1000) & done
trap "/bin/sleep 0.1 && heard=1" HUP; echo ready >> %[2]s
while :; do if [ "$heard" ]; then heard=; echo heard >> %[2]s; fi; done`, others, out))
	b.begin(o)
	awaitWords(t, out, "ready", 1)
	for n := range rounds {
		b.SignalAll(o.Attempt, syscall.SIGHUP)
		awaitWords(t, out, "heard", n+1)
	}
	b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Fast: true, Cause: proto.Removed})
	b.end()
}

// awaitWords waits until a file has a word so many times.
func awaitWords(t testing.TB, path, word string, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; unix.Poll(nil, 5) {
		text, _ := os.ReadFile(path)
		got := strings.Count(string(text), word)
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d have written %q", got, n, word)
		}
	}
}
