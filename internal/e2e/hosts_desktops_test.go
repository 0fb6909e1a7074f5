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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
)

// The times of the desktops' policy.
const (
	startAfter  = time.Second
	resumeAfter = 3 * time.Second
	leaveAfter  = 5 * time.Second
)

// atOnce bounds what is promised within 250 ms, on a machine that may be busy with other tests: above all it is less than resumeAfter.
const atOnce = 2 * time.Second

// starved is how long one thing may take on desktops, where everything else that runs on the machine comes before tasks and what starts them: the minute of P9.
const starved = time.Minute

// coresOfDesk is what each desktop lends, and the server has.
const coresOfDesk = 2

// desktops is a pool of a server and of three people's machines.
//
//	central 10.111.0.1   collector, negotiator
//	submit  10.111.0.2   schedd
//	server  10.111.0.11  startd
//	desk1   10.111.0.21  startd, guard; so desk2, desk3
type desktops struct {
	*hosts
	desks  []*desk
	worker string // the program of the tasks
	tasks  []*counted

	asleep *desk            // nil: none is
	slept  map[*counted]int // what ran there, with its attempts
	pids   []int            // all processes there
}

// desk is a desktop and the person at it.
type desk struct {
	*host
	address  string
	terminal *Terminal
	opened   int // the process whose terminals it is one of
}

// startDesktops builds the pool and waits until all machines are lent.
func startDesktops(t *testing.T) *desktops {
	if os.Getenv("ROOST_OWNER_MINUTES") == "" {
		t.Skip("SKIPPED: desktops whose owners come and go take minutes of a machine on which nothing else runs: scripts/soak-owners.sh")
	}
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no task can leave a desktop with what it has reached: %v", err)
	}
	h := &desktops{hosts: bareHosts(t, special{grouped: true})}
	ca := filepath.Join(h.dir, "ca")
	h.worker = h.buildWorker()
	for _, d := range []struct{ name, address string }{{"server", "10.111.0.11"}, {"desk1", "10.111.0.21"}, {"desk2", "10.111.0.22"}, {"desk3", "10.111.0.23"}} {
		private := strings.HasPrefix(d.name, "desk")
		n := h.add(d.name, d.address, h.issue(ca, d.name, auth.Startd), func(n *config.Node) {
			own := config.Startd{Name: d.name, Listen: []string{d.address + ":9703"}}
			own.Resources.CPU, own.Resources.Memory, own.Resources.Disk = coresOfDesk*1000, 8<<30, 8<<30
			if private {
				own.Policy = config.Policy{Preset: "desktop", StartAfter: startAfter, ResumeAfter: resumeAfter, LeaveAfter: leaveAfter}
				n.Owner.File = n.Dir + "-owner.hcl"
			}
			n.Startds = []config.Startd{own}
		})
		if n.private = private; private {
			// What the other machines do would be somebody's work, as they are all one.
			if err := os.WriteFile(n.node.Owner.File, []byte("foreign_cpu = 1000\nowners = [\"nobody\"]\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			h.desks = append(h.desks, &desk{host: n, address: d.address})
		}
	}
	t.Cleanup(h.endAll)
	for _, n := range h.nodes {
		n.start()
	}
	h.awaitFor(starved, "all machines", func() bool { return slices.Equal(h.machines(), []string{"desk1", "desk2", "desk3", "server"}) })
	for _, d := range h.desks {
		d.sitDown()
	}
	return h
}

// buildWorker builds the program of the tasks where all hosts see it.
func (h *desktops) buildWorker() string {
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

// sitDown opens a terminal on the desktop, as somebody does who has sat down there.
func (d *desk) sitDown() {
	d.Helper()
	if d.terminal != nil && d.opened == d.cmd.Process.Pid {
		return
	}
	d.leaves()
	t, err := OpenTerminal(d.cmd.Process.Pid)
	if err != nil {
		d.Fatalf("%s: %v", d.name, err)
	}
	d.terminal, d.opened = t, d.cmd.Process.Pid
}

// leaves closes the terminal.
func (d *desk) leaves() {
	if d.terminal != nil {
		d.terminal.Close()
		d.terminal = nil
	}
}

func (d *desk) key() {
	d.Helper()
	if err := d.terminal.Type(); err != nil {
		d.Fatalf("%s: %v", d.name, err)
	}
}

// groups are those of the tasks on the desktop.
func (d *desk) groups() []cgroup.TaskDir { return Groups(d.dir) }

// stands reports whether there are tasks on the desktop and all of them stand still.
func (d *desk) stands() bool {
	all := d.groups()
	return len(all) > 0 && cgroup.Standing(all) == len(all)
}

// goes reports whether there are tasks on the desktop and all of them run.
func (d *desk) goes() bool {
	all := d.groups()
	return len(all) > 0 && cgroup.Standing(all) == 0
}

// freeze presses a key, and returns how long it takes until all of the desktop's tasks stand still.
func (d *desk) freeze() time.Duration {
	d.Helper()
	groups := d.groups()
	began := time.Now()
	d.key()
	late := time.NewTimer(patience)
	defer late.Stop()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for cgroup.Standing(groups) < len(groups) {
		select {
		case <-tick.C:
		case <-late.C:
			d.tell()
			d.Fatalf("%s: %d of %d tasks stand still %v after a key", d.name, cgroup.Standing(groups), len(groups), patience)
		}
	}
	return time.Since(began)
}

// on runs a command as somebody on the desktop.
func (d *desk) on(who user, args ...string) (out string, ok bool) {
	cmd := exec.CommandContext(d.Context(), d.roost, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOST_DIR=" + d.dir, "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.uid, Gid: who.gid}}
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// signal sends a signal to one of the desktop's daemons.
func (d *desk) signal(role string, sig syscall.Signal) (pid int) {
	d.Helper()
	d.awaitFor(starved, d.name+" has its "+role, func() bool { pid = d.daemon(role); return pid != 0 })
	if err := syscall.Kill(pid, sig); err != nil {
		d.Fatal(err)
	}
	return pid
}

// another waits until another process than that does what a daemon does.
func (d *desk) another(role string, than int) {
	d.Helper()
	d.awaitFor(starved, "another "+role+" serves "+d.name, func() bool { now := d.daemon(role); return now != 0 && now != than })
}

// TestDesktops lends three people's machines to a pool: work flows there while they are away, stands still when they press a key, leaves with what it has
// reached when they stay, and is done right elsewhere. A person's no holds whatever state the daemons are in.
func TestDesktops(t *testing.T) {
	h := startDesktops(t)
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"work flows, stands still and goes on", h.workComesAndGoes},
		{"a desktop falls asleep", h.desktopSleeps},
		{"an owner stays", h.ownerStays},
		{"an owner says no", h.ownerSaysNo},
		{"a startd hangs", h.startdHangs},
		{"a startd is killed", h.startdIsKilledThere},
		{"a guard is killed", h.guardIsKilled},
		{"a desktop is cut off", h.desktopIsCutOff},
		{"it wakes after the leases", h.desktopWakes},
	} {
		began := time.Now()
		part.run()
		t.Logf("%s: %v", part.name, time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			h.tell()
			return
		}
	}
	h.finish()
}
