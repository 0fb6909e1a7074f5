package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fillWithCounters fills every desktop with tasks that count until they are ended.
func (h *desktopPool) fillWithCounters() {
	h.Helper()
	h.awaitAvailable()
	awake := slices.DeleteFunc(slices.Clone(h.desks), func(d *ownedDesktop) bool { return d == h.sleepingDesk })
	missing := func() (n int) {
		on := h.tasksByMachine()
		for _, d := range awake {
			n += max(coresOfDesk-on[d.name], 0)
		}
		return n
	}
	for n := missing(); n > 0; n = missing() {
		var came []*countingTask
		for range n {
			came = append(came, h.submitCounter(fmt.Sprintf("count%d", len(h.tasks)+1), endlessSteps, ""))
			h.tasks = append(h.tasks, came[len(came)-1])
		}
		for _, c := range came {
			h.awaitFor(starvedLimit, c.name+" runs", func() bool { return h.showTask(c.id).State == "running" })
			if h.showTask(c.id).Node == "server" { // no desktop was free at that moment
				c.gate.openGate()
				h.awaitFor(starvedLimit, c.name+" ends", func() bool { return h.showTask(c.id).State == "completed" })
			}
		}
	}
	for _, d := range awake {
		h.awaitFor(starvedLimit, "all tasks on "+d.name+" run", func() bool {
			return len(d.taskCgroups()) == coresOfDesk && d.isRunning()
		})
	}
}

// awaitAvailable waits until all machines that are awake accept claims.
func (h *desktopPool) awaitAvailable() {
	h.Helper()
	h.awaitFor(starvedLimit, "all machines are lent", func() bool {
		var all struct {
			Nodes []struct{ Name, Owner string }
		}
		return h.queryJSON(&all, "nodes") && len(all.Nodes) >= len(h.desks) &&
			!slices.ContainsFunc(all.Nodes, func(n struct {
				Name, Owner string
			}) bool {
				return n.Owner != "" && (h.sleepingDesk == nil || n.Name != h.sleepingDesk.name)
			})
	})
}

// tasksByMachine counts the tasks that run or are suspended, by machine.
func (h *desktopPool) tasksByMachine() map[string]int {
	on := map[string]int{}
	for _, c := range h.tasks {
		if now := h.showTask(c.id); now.State == "running" || now.State == "suspended" {
			on[now.Node]++
		}
	}
	return on
}

// tasksAt lists the tasks on a desktop, with their attempts.
func (h *desktopPool) tasksAt(d *ownedDesktop) map[*countingTask]int {
	on := map[*countingTask]int{}
	for _, c := range h.tasks {
		if now := h.showTask(c.id); now.Node == d.name && (now.State == "running" || now.State == "suspended") {
			on[c] = now.Attempt
		}
	}
	return on
}

// checkSameAttempts checks that tasks are still in the same attempts.
func (h *desktopPool) checkSameAttempts(before map[*countingTask]int) {
	h.Helper()
	for c, attempt := range before {
		if now := h.showTask(c.id); now.Attempt != attempt {
			h.Errorf("%s is in attempt %d, and was in %d", c.name, now.Attempt, attempt)
		}
	}
}

// cpuTimes returns the sum of the tasks' processor time.
func cpuTimes(groups []cgroup.TaskDir) (sum uint64) {
	for _, g := range groups {
		ns, _ := cgroup.CPUTime(string(g))
		sum += ns
	}
	return sum
}

// pressKeysFrozen presses keys for a while, and checks that the desktop's tasks get no
// processor time meanwhile.
func (d *ownedDesktop) pressKeysFrozen(for_ time.Duration) {
	d.Helper()
	groups := d.taskCgroups()
	before := cpuTimes(groups)
	if before == 0 {
		d.Errorf("%s: its tasks have never used a processor", d.name)
	}
	for end := time.Now().Add(for_); time.Now().Before(end); {
		waitReal(d.Context(), 200*time.Millisecond)
		d.pressKey()
	}
	if now := cpuTimes(groups); now != before {
		d.Errorf("%s: tasks used %v of processor time while the owner was there", d.name, time.Duration(now-before))
	}
}

// awaitResumed waits until all tasks on a desktop run again.
func (d *ownedDesktop) awaitResumed() {
	d.Helper()
	d.awaitFor(starvedLimit, "the tasks on "+d.name+" go on", d.isRunning)
}

func (h *desktopPool) workIsSuspendedAndResumed() {
	h.fillWithCounters()
	var took []time.Duration
	for round := range 2 {
		for _, d := range h.desks {
			took = append(took, d.timeFreeze())
		}
		if round == 0 {
			d := h.desks[0]
			on := h.tasksAt(d)
			h.awaitFor(starvedLimit, "the tasks are suspended", func() bool {
				for c := range on {
					if now := h.showTask(c.id); now.State != "suspended" ||
						!strings.Contains(now.Reason, "the owner of "+d.name+" is back") {
						return false
					}
				}
				return len(on) == coresOfDesk
			})
			d.pressKeysFrozen(time.Second)
			h.checkSameAttempts(on)
		}
		for _, d := range h.desks {
			d.awaitResumed()
		}
	}
	h.Logf("from a key until all tasks of a desktop stand still: %s", printDelays(took))
	if took[len(took)-1] > promptLimit {
		h.Errorf("that is late")
	}
}

// ownerStays checks an owner who stays. Tasks leave with their progress and resume
// elsewhere. After the owner has left, the machine accepts claims again.
func (h *desktopPool) ownerStays() {
	d := h.desks[0]
	on := h.tasksAt(d)
	d.timeFreeze()
	came := time.Now()
	gone := func() bool {
		d.pressKey()
		return len(d.taskCgroups()) == 0
	}
	h.awaitFor(starvedLimit, "the tasks have left "+d.name, gone)
	left := time.Since(came)
	h.awaitFor(starvedLimit, "they run on the server", func() bool {
		d.pressKey()
		return h.tasksByMachine()["server"] == len(on)
	})
	h.Logf("%d tasks have left after %v, and run elsewhere after %v", len(on), left.Round(time.Millisecond),
		time.Since(came).Round(time.Millisecond))
	for c, attempt := range on {
		if now := h.showTask(c.id); now.Attempt != attempt+1 {
			h.Errorf("%s is in attempt %d after %d", c.name, now.Attempt, attempt)
		}
		c.gate.openGate()
	}
	h.fillWithCounters()
}

// ownerPausesMachine checks a pause by an owner in the owner file. Others may not
// pause, and a resume lets tasks come again.
func (h *desktopPool) ownerPausesMachine() {
	d, owner := h.desks[1], commandUser{65534, 65534}
	if out, ok := d.deskCommand(someone, "pause", "1h"); ok || !strings.Contains(out, "owner") {
		h.Errorf("somebody paused a machine that is not his: %s", out)
	}
	groups := d.taskCgroups()
	before := time.Now()
	out, ok := d.deskCommand(owner, "pause", "1h", "--reason", "a talk")
	took := time.Since(before)
	if !ok || cgroup.CountFrozen(groups) != len(groups) || len(groups) == 0 {
		h.Fatalf("roost pause: %v, %d of %d tasks stand still\n%s", ok, cgroup.CountFrozen(groups), len(groups), out)
	}
	h.Logf("roost pause: %v: %s", took.Round(time.Millisecond), strings.TrimSpace(out))
	if out, _ := d.deskCommand(someone, "mine"); !strings.Contains(out, "paused until ") ||
		!strings.Contains(out, "a talk") || strings.Count(out, "suspended") < 1 {
		h.Errorf("roost mine:\n%s", out)
	}
	if out, ok := d.deskCommand(someone, "resume"); ok {
		h.Errorf("somebody lent a machine that is not his: %s", out)
	}
	h.awaitFor(starvedLimit, "the tasks have left "+d.name, func() bool {
		return len(d.taskCgroups()) == 0 && h.tasksByMachine()[d.name] == 0
	})
	// it comes before those that were vacated
	asked := h.submitCounter("asked", endlessSteps, "priority = 9\n  requirements = \"TARGET.Name == \\\"desk2\\\"\"")
	h.tasks = append(h.tasks, asked)
	h.awaitFor(starvedLimit, "roost why names the pause", func() bool {
		why, _, _ := h.runAs(someone, "why", asked.id)
		return strings.Contains(why, "paused")
	})
	if now := h.showTask(asked.id); now.State != "idle" {
		h.Errorf("a task is %s on a machine that is paused", now.State)
	}
	if out, ok := d.deskCommand(owner, "resume"); !ok {
		h.Errorf("roost resume: %s", out)
	}
	h.awaitFor(starvedLimit, "the machine is lent again", func() bool {
		return h.showTask(asked.id).State == "running"
	})
	h.fillWithCounters()
}

// startdIsHung checks that the guard itself freezes tasks when the startd hangs. A pause
// and a resume work, too.
func (h *desktopPool) startdIsHung() {
	d := h.desks[0]
	on := h.tasksAt(d)
	d.signalDaemon("startd", syscall.SIGSTOP)
	h.Logf("with the startd stopped, from a key until its tasks stand still: %v",
		d.timeFreeze().Round(time.Millisecond))
	d.pressKeysFrozen(time.Second)
	out, ok := d.deskCommand(root, "pause", "for", "good")
	if !ok || !d.isFrozen() {
		h.Errorf("roost pause: %s", out)
	}
	if out, ok := d.deskCommand(root, "mine"); !ok || !strings.Contains(out, "paused for good") {
		h.Errorf("roost mine:\n%s", out)
	}
	if out, ok := d.deskCommand(root, "resume"); !ok {
		h.Errorf("roost resume: %s", out)
	}
	d.signalDaemon("startd", syscall.SIGCONT)
	d.awaitResumed()
	h.checkSameAttempts(on)
}

// startdIsKilledAtKey checks a key press while no startd runs. The guard freezes the
// tasks, and the next startd leaves them frozen until the owner has gone.
func (h *desktopPool) startdIsKilledAtKey() {
	d := h.desks[0]
	on := h.tasksAt(d)
	before := d.signalDaemon("startd", syscall.SIGKILL)
	h.Logf("with the startd killed, from a key until its tasks stand still: %v", d.timeFreeze().Round(time.Millisecond))
	d.awaitRestarted("startd", before)
	d.pressKeysFrozen(time.Second)
	d.awaitResumed()
	h.checkSameAttempts(on)
}

// guardIsKilled checks that a new guard sees the owner, and what the old one has frozen.
func (h *desktopPool) guardIsKilled() {
	d := h.desks[1]
	on := h.tasksAt(d)
	before := d.signalDaemon("guard", syscall.SIGKILL)
	d.awaitRestarted("guard", before)
	h.Logf("with a new guard, from a key until its tasks stand still: %v", d.timeFreeze().Round(time.Millisecond))
	d.pressKeysFrozen(time.Second)
	d.awaitResumed()
	h.checkSameAttempts(on)
}

// desktopIsCutOff cuts a desktop off from all others for less than a lease while its
// owner is present. The tasks are not affected.
func (h *desktopPool) desktopIsCutOff() {
	d := h.desks[1]
	on := h.tasksAt(d)
	d.timeFreeze()
	h.net.unplug(d.name)
	d.pressKeysFrozen(time.Second)
	d.awaitResumed()
	h.net.replug(d.name)
	waitReal(h.Context(), time.Second)
	h.checkSameAttempts(on)
}

// desktopSleeps suspends a desktop. For everything on it only the clock advances.
func (h *desktopPool) desktopSleeps() {
	h.sleepingDesk = h.desks[2]
	h.sleepingTasks = h.tasksAt(h.sleepingDesk)
	h.sleepingDesk.timeFreeze() // as its guard does when it learns that the host is about to suspend
	h.processSpace = namespaceProcesses(h.net.namespaceName(h.sleepingDesk.name))
	for _, pid := range h.processSpace {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
}

// desktopWakes wakes the desktop after the leases of its tasks. None of them resumes
// there; each completes elsewhere, once.
func (h *desktopPool) desktopWakes() {
	for _, c := range h.tasks {
		if h.showTask(c.id).Node == "server" {
			c.gate.openGate() // there is room elsewhere
		}
	}
	for c, attempt := range h.sleepingTasks {
		h.awaitFor(starvedLimit, c.name+" runs elsewhere", func() bool {
			now := h.showTask(c.id)
			// it may have been there already, and completed
			return now.Attempt > attempt && (now.State == "running" || now.State == "completed")
		})
	}
	for _, pid := range h.processSpace {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	d := h.sleepingDesk
	h.sleepingDesk = nil
	h.awaitAvailable()
	h.awaitFor(starvedLimit, "nothing of what ran before the sleep is left", func() bool {
		return len(d.taskCgroups()) <= h.tasksByMachine()[d.name]
	})
}

// finishCounters ends all tasks, and checks the guarantees on what they wrote.
func (h *desktopPool) finishCounters() {
	h.Helper()
	conn, err := rpc.Dial("unix:"+filepath.Join(h.nodes["submit"].dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	for _, c := range h.tasks {
		c.gate.openGate()
	}
	moved, twice := 0, 0
	for _, c := range h.tasks {
		h.awaitFor(starvedLimit, c.name+" ends (P9)", func() bool { return h.showTask(c.id).State == "completed" })
		t, machines := h.checkSteps(c, h.jobEvents(client, c.id))
		twice += t
		if machines > 1 {
			moved++
		}
	}
	h.Logf("%d tasks, %d of them on more than one machine; %d steps were done twice", len(h.tasks), moved, twice)
	if moved == 0 {
		h.Error("none has moved")
	}
	for _, d := range h.desks {
		var mine struct {
			Today struct {
				Interruptions int
				Worst         float64 `json:"worst_freeze_seconds"`
			}
		}
		out, _ := d.deskCommand(root, "mine", "--json")
		json.Unmarshal([]byte(out), &mine)
		h.Logf("%s: stopped %d times, at worst within %.1f ms", d.name, mine.Today.Interruptions, 1000*mine.Today.Worst)
	}
}
