package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// The times of the desktops' policy.
const (
	startAfter  = time.Second
	resumeAfter = 3 * time.Second
	leaveAfter  = 5 * time.Second
)

// promptLimit bounds what must happen within 250 ms, on a machine that may be busy with
// other tests. Above all it is less than resumeAfter.
const promptLimit = 2 * time.Second

// starvedLimit is how long one step may take on desktops. Everything else on the machine
// has a higher priority than tasks and what starts them, so it is the minute of P9.
const starvedLimit = time.Minute

// coresOfDesk is the number of cores that each desktop offers, and that the server has.
const coresOfDesk = 2

// desktopPool is a pool of a server and three desktops.
//
//	central 10.111.0.1   collector, negotiator
//	submit  10.111.0.2   schedd
//	server  10.111.0.11  startd
//	desk1   10.111.0.21  startd, guard; desk2 and desk3 the same
type desktopPool struct {
	*hostPool
	desks  []*ownedDesktop
	worker string // program of the tasks
	tasks  []*countingTask

	sleepingDesk  *ownedDesktop         // nil: none
	sleepingTasks map[*countingTask]int // tasks that ran there, with their attempts
	processSpace  []int                 // all processes there
}

// ownedDesktop is a desktop with its owner.
type ownedDesktop struct {
	*testHost
	address  string
	terminal *OwnerTerminal
	opened   int // process that has the terminal
}

// startDesktops builds the pool and waits until all machines accept claims.
func startDesktops(t *testing.T) *desktopPool {
	if os.Getenv("ROOST_OWNER_MINUTES") == "" {
		t.Skip("SKIPPED: desktops whose owners come and go take minutes of a machine on which nothing else runs: " +
			"scripts/soak-owners.sh")
	}
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no task can leave a desktop with what it has reached: %v", err)
	}
	h := &desktopPool{hostPool: bareHosts(t, hostPoolOptions{sharesCgroups: true})}
	ca := filepath.Join(h.dir, "ca")
	h.worker = h.buildWorker()
	for _, d := range []struct {
		name, address string
	}{{"server", "10.111.0.11"}, {"desk1", "10.111.0.21"}, {"desk2", "10.111.0.22"}, {"desk3", "10.111.0.23"}} {
		private := strings.HasPrefix(d.name, "desk")
		n := h.addHost(d.name, d.address, h.issueCertificate(ca, d.name, peer.Startd), func(n *config.Node) {
			own := config.StartdSettings{Name: d.name, Listen: []string{d.address + ":9703"}}
			own.Resources.CPU, own.Resources.Memory, own.Resources.Disk = coresOfDesk*1000, 8<<30, 8<<30
			if private {
				own.Policy = config.OwnerPolicy{Preset: "desktop", StartAfter: startAfter, ResumeAfter: resumeAfter,
					LeaveAfter: leaveAfter}
				n.Owner.File = n.Dir + "-owner.hcl"
			}
			n.Startds = []config.StartdSettings{own}
		})
		if n.onlyTerminals = private; private {
			// All machines are one host, so the load of the others would count as foreign
			// load.
			if err := os.WriteFile(n.node.Owner.File, []byte("foreign_cpu = 1000\nowners = [\"nobody\"]\n"),
				0o644); err != nil {
				t.Fatal(err)
			}
			h.desks = append(h.desks, &ownedDesktop{testHost: n, address: d.address})
		}
	}
	t.Cleanup(h.endAll)
	for _, n := range h.nodes {
		n.start()
	}
	h.awaitFor(starvedLimit, "all machines", func() bool {
		return slices.Equal(h.machineNames(), []string{"desk1", "desk2", "desk3", "server"})
	})
	for _, d := range h.desks {
		d.openTerminal()
	}
	return h
}

// buildWorker builds the program of the tasks where all hosts see it.
func (h *desktopPool) buildWorker() string {
	dir := filepath.Join(h.dir, "programs")
	path := filepath.Join(dir, "count.go")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(countingProgram), 0o644); err != nil {
		h.Fatal(err)
	}
	program := filepath.Join(dir, "count")
	if out, err := exec.CommandContext(h.Context(), "go", "build", "-o", program, path).CombinedOutput(); err != nil {
		h.Fatalf("%v\n%s", err, out)
	}
	return program
}

// openTerminal opens a terminal on the desktop, as an owner who sits down does.
func (d *ownedDesktop) openTerminal() {
	d.Helper()
	if d.terminal != nil && d.opened == d.cmd.Process.Pid {
		return
	}
	d.closeTerminal()
	t, err := OpenTerminal(d.cmd.Process.Pid)
	if err != nil {
		d.Fatalf("%s: %v", d.name, err)
	}
	d.terminal, d.opened = t, d.cmd.Process.Pid
}

// closeTerminal closes the terminal.
func (d *ownedDesktop) closeTerminal() {
	if d.terminal != nil {
		d.terminal.Close()
		d.terminal = nil
	}
}

func (d *ownedDesktop) pressKey() {
	d.Helper()
	if err := d.terminal.PressKey(); err != nil {
		d.Fatalf("%s: %v", d.name, err)
	}
}

// taskCgroups returns the control groups of the desktop's tasks.
func (d *ownedDesktop) taskCgroups() []cgroup.TaskDir { return TaskCgroups(d.dir) }

// isFrozen reports whether the desktop has tasks and all of them are frozen.
func (d *ownedDesktop) isFrozen() bool {
	all := d.taskCgroups()
	return len(all) > 0 && cgroup.CountFrozen(all) == len(all)
}

// isRunning reports whether the desktop has tasks and all of them run.
func (d *ownedDesktop) isRunning() bool {
	all := d.taskCgroups()
	return len(all) > 0 && cgroup.CountFrozen(all) == 0
}

// timeFreeze presses a key, and returns how long it takes until all of the desktop's
// tasks are frozen.
func (d *ownedDesktop) timeFreeze() time.Duration {
	d.Helper()
	groups := d.taskCgroups()
	began := time.Now()
	d.pressKey()
	late := time.NewTimer(awaitTimeout)
	defer late.Stop()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for cgroup.CountFrozen(groups) < len(groups) {
		select {
		case <-tick.C:
		case <-late.C:
			d.printLogs()
			d.Fatalf("%s: %d of %d tasks stand still %v after a key", d.name, cgroup.CountFrozen(groups), len(groups),
				awaitTimeout)
		}
	}
	return time.Since(began)
}

// deskCommand runs a command as a user of the desktop.
func (d *ownedDesktop) deskCommand(who commandUser, args ...string) (out string, ok bool) {
	cmd := exec.CommandContext(d.Context(), d.roost, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOST_DIR=" + d.dir, "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.uid, Gid: who.gid}}
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// signalDaemon sends a signal to one of the desktop's daemons.
func (d *ownedDesktop) signalDaemon(role string, sig syscall.Signal) (pid int) {
	d.Helper()
	d.awaitFor(starvedLimit, d.name+" has its "+role, func() bool { pid = d.daemonPID(role); return pid != 0 })
	if err := syscall.Kill(pid, sig); err != nil {
		d.Fatal(err)
	}
	return pid
}

// awaitRestarted waits until a daemon has another process id.
func (d *ownedDesktop) awaitRestarted(role string, than int) {
	d.Helper()
	d.awaitFor(starvedLimit, "another "+role+" serves "+d.name, func() bool {
		now := d.daemonPID(role)
		return now != 0 && now != than
	})
}

// TestDesktops runs a pool with the desktops of three owners. Tasks come while owners are
// away, freeze when a key is pressed, leave with their progress when the owner stays, and
// complete elsewhere. An owner's pause holds in any state of the daemons.
func TestDesktops(t *testing.T) {
	h := startDesktops(t)
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"work flows, stands still and goes on", h.workIsSuspendedAndResumed},
		{"a desktop falls asleep", h.desktopSleeps},
		{"an owner stays", h.ownerStays},
		{"an owner says no", h.ownerPausesMachine},
		{"a startd hangs", h.startdIsHung},
		{"a startd is killed", h.startdIsKilledAtKey},
		{"a guard is killed", h.guardIsKilled},
		{"a desktop is cut off", h.desktopIsCutOff},
		{"it wakes after the leases", h.desktopWakes},
	} {
		began := time.Now()
		part.run()
		t.Logf("%s: %v", part.name, time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			h.printLogs()
			return
		}
	}
	h.finishCounters()
}
