package guard

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// startSpinner starts a CPU-bound process in a cgroup like that of a startd.
func startSpinner(t *testing.T) *cgroup.ClaimGroup {
	t.Helper()
	host, err := cgroup.Open(fmt.Sprintf("/roost/test-guard-%d", os.Getpid()))
	if err != nil || !host.Enforcement().Freeze {
		t.Skipf("SKIPPED: this machine freezes nothing for us: %v, %q", err, host.Enforcement().Missing)
	}
	group, err := host.MakeGroup("1", cgroup.GroupLimits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Delete(); err != nil {
			t.Error(err)
		}
		host.Close()
	})
	c := exec.Command("/bin/sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if err := os.WriteFile(group.TaskDir()+"/cgroup.procs", fmt.Append(nil, c.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	return group
}

// TestAKeyFreezesTheTasksOfADeadStartd checks the guarantee with real processes. A person
// types into a terminal, no startd is running, and the process must be frozen. The guard
// is a second one, which only has the first one's records.
func TestAKeyFreezesTheTasksOfADeadStartd(t *testing.T) {
	group := startSpinner(t)
	dir := t.TempDir()

	first := testGuard(t, dir, newFakeSource()) // it observes and sends nothing
	stop := first.run(t)
	startd := connect(t, first, "a", group.FreezeDir())
	for !first.hasReported(t, "a") {
	}
	startd.disconnect()
	stop()

	var mine atomic.Uint64 // other people may type here, too
	terminals := idle.NewTerminals(func(dev uint64) bool { return dev != mine.Load() })
	g := testGuard(t, dir, terminals)
	g.state.console = false
	reported := make(chan string, 1)
	g.freeze = func(dirs []cgroup.TaskDir) ([]string, error) {
		frozen, err := freezeGroups(dirs)
		reported <- fmt.Sprint(len(frozen), err)
		return frozen, err
	}
	defer g.run(t)()
	for g.lastObservations(t) == nil {
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("SKIPPED: no terminal can be made here: %v", err)
	}
	defer master.Close()
	defer slave.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(slave.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	mine.Store(st.Rdev)
	if u, _ := group.Usage(); u.Frozen {
		t.Fatalf("it is frozen before anybody typed: %v", g.lastObservations(t))
	}
	var began time.Time
	got := ""
	for tick := time.Tick(50 * time.Millisecond); got == ""; { // the first key may come before the terminal is known
		began = time.Now()
		master.Write([]byte("x\n"))
		slave.Read(make([]byte, 8))
		select {
		case got = <-reported:
		case <-tick:
		}
	}
	took := time.Since(began)
	if u, _ := group.Usage(); got != "1 <nil>" || !u.Frozen {
		t.Errorf("froze %s, and the group is %+v", got, u)
	}
	t.Logf("from the key to the frozen group: %v", took)
}

// TestWhoIsATask checks isTask for a task's process and for this one.
func TestWhoIsATask(t *testing.T) {
	pids := cgroup.TaskDir(startSpinner(t).FreezeDir()).Processes()
	if len(pids) != 1 || !isTask(pids[0]) || isTask(os.Getpid()) {
		t.Errorf("tasks %v: %v; this test: %v", pids, len(pids) == 1 && isTask(pids[0]), isTask(os.Getpid()))
	}
}

func TestGroupsOfTasks(t *testing.T) {
	for groups, want := range map[string]bool{
		"0::/roost/n1-943a/5/task/run\n": true, "6:freezer:/roost-yielding/n1-943a/5/run\n": true,
		"0::/system.slice/roost.service/roost/n1/5/starter\n": true,
		"0::/system.slice/roost.service/daemons\n":            false,
		"0::/user.slice/user-1000.slice/session-2.scope\n":    false,
		"0::/roost\n": false,
	} {
		if got := isTaskCgroup(groups); got != want {
			t.Errorf("%q: %v, want %v", groups, got, want)
		}
	}
}

// TestPauseWithoutAGuard checks that an offline pause freezes the tasks that the last
// guard knew. The next guard must load the pause.
func TestPauseWithoutAGuard(t *testing.T) {
	group := startSpinner(t)
	dir := t.TempDir()
	first := testGuard(t, dir, newFakeSource()) // it observes and sends nothing
	stop := first.run(t)
	startd := connect(t, first, "a", group.FreezeDir())
	for !first.hasReported(t, "a") {
	}
	startd.disconnect()
	stop()
	reply, err := PauseOffline(dir, 0, "root", "a fire")
	if u, _ := group.Usage(); err != nil || reply.GetFrozen() != 1 || !u.Frozen {
		t.Errorf("%v, %v, and the group is %+v", reply, err, u)
	}
	t.Logf("it took %v", time.Duration(reply.GetTook()))
	if g := testGuard(t, dir); g.state.activePause().GetReason() != "a fire" {
		t.Errorf("the next guard has the pause %v", g.state.activePause())
	}
	if _, err := ResumeOffline(dir); err != nil {
		t.Error(err)
	}
	if p, err := OfflinePause(dir); p != nil || err != nil {
		t.Errorf("after resume: %v, %v", p, err)
	}
}

// TestADesktopBeginsPaused checks the initial pause of a desktop. A later decision of the
// owner must remain.
func TestADesktopBeginsPaused(t *testing.T) {
	dir := t.TempDir()
	if err := WriteInitialPause(dir); err != nil {
		t.Fatal(err)
	}
	if p, err := OfflinePause(dir); err != nil || p.GetReason() != NotAccepted || p.GetUntil() != 0 {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := PauseOffline(dir, 0, "ann", "mine"); err != nil {
		t.Fatal(err)
	}
	if err := WriteInitialPause(dir); err != nil {
		t.Fatal(err)
	}
	if p, err := OfflinePause(dir); err != nil || p.GetReason() != "mine" {
		t.Errorf("%v, %v", p, err)
	}
}
