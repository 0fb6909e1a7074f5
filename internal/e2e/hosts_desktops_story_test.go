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

// full has every desktop full of tasks that count until they are told to end.
func (h *desktops) full() {
	h.Helper()
	h.lent()
	awake := slices.DeleteFunc(slices.Clone(h.desks), func(d *desk) bool { return d == h.asleep })
	missing := func() (n int) {
		on := h.where()
		for _, d := range awake {
			n += max(coresOfDesk-on[d.name], 0)
		}
		return n
	}
	for n := missing(); n > 0; n = missing() {
		var came []*counted
		for range n {
			came = append(came, h.count(fmt.Sprintf("count%d", len(h.tasks)+1), endless, ""))
			h.tasks = append(h.tasks, came[len(came)-1])
		}
		for _, c := range came {
			h.awaitFor(starved, c.name+" runs", func() bool { return h.show(c.id).State == "running" })
			if h.show(c.id).Node == "server" { // no desktop was free in that moment
				c.gate.open()
				h.awaitFor(starved, c.name+" ends", func() bool { return h.show(c.id).State == "completed" })
			}
		}
	}
	for _, d := range awake {
		h.awaitFor(starved, "all tasks on "+d.name+" run", func() bool { return len(d.groups()) == coresOfDesk && d.goes() })
	}
}

// lent waits until all machines that are awake are.
func (h *desktops) lent() {
	h.Helper()
	h.awaitFor(starved, "all machines are lent", func() bool {
		var all struct {
			Nodes []struct{ Name, Owner string }
		}
		return h.ask(&all, "nodes") && len(all.Nodes) >= len(h.desks) && !slices.ContainsFunc(all.Nodes, func(n struct{ Name, Owner string }) bool {
			return n.Owner != "" && (h.asleep == nil || n.Name != h.asleep.name)
		})
	})
}

// where counts the tasks that run or are suspended, by machine.
func (h *desktops) where() map[string]int {
	on := map[string]int{}
	for _, c := range h.tasks {
		if now := h.show(c.id); now.State == "running" || now.State == "suspended" {
			on[now.Node]++
		}
	}
	return on
}

// at lists the tasks on a desktop, with their attempts.
func (h *desktops) at(d *desk) map[*counted]int {
	on := map[*counted]int{}
	for _, c := range h.tasks {
		if now := h.show(c.id); now.Node == d.name && (now.State == "running" || now.State == "suspended") {
			on[c] = now.Attempt
		}
	}
	return on
}

// same holds that tasks are in the attempt that they were in.
func (h *desktops) same(before map[*counted]int) {
	h.Helper()
	for c, attempt := range before {
		if now := h.show(c.id); now.Attempt != attempt {
			h.Errorf("%s is in attempt %d, and was in %d", c.name, now.Attempt, attempt)
		}
	}
}

// used is the processor time that tasks have had.
func used(groups []cgroup.TaskDir) (sum uint64) {
	for _, g := range groups {
		ns, _ := cgroup.CPU(string(g))
		sum += ns
	}
	return sum
}

// dead presses keys for a while, and holds that the tasks of the desktop get no processor time meanwhile.
func (d *desk) dead(for_ time.Duration) {
	d.Helper()
	groups := d.groups()
	before := used(groups)
	if before == 0 {
		d.Errorf("%s: its tasks have never used a processor", d.name)
	}
	for end := time.Now().Add(for_); time.Now().Before(end); {
		rest(d.Context(), 200*time.Millisecond)
		d.key()
	}
	if now := used(groups); now != before {
		d.Errorf("%s: tasks used %v of processor time while the owner was there", d.name, time.Duration(now-before))
	}
}

// goesOn waits until all tasks on a desktop run again.
func (d *desk) goesOn() {
	d.Helper()
	d.awaitFor(starved, "the tasks on "+d.name+" go on", d.goes)
}

func (h *desktops) workComesAndGoes() {
	h.full()
	var took []time.Duration
	for round := range 2 {
		for _, d := range h.desks {
			took = append(took, d.freeze())
		}
		if round == 0 {
			d := h.desks[0]
			on := h.at(d)
			h.awaitFor(starved, "the tasks are suspended", func() bool {
				for c := range on {
					if now := h.show(c.id); now.State != "suspended" || !strings.Contains(now.Reason, "the owner of "+d.name+" is back") {
						return false
					}
				}
				return len(on) == coresOfDesk
			})
			d.dead(time.Second)
			h.same(on)
		}
		for _, d := range h.desks {
			d.goesOn()
		}
	}
	h.Logf("from a key until all tasks of a desktop stand still: %s", delays(took))
	if took[len(took)-1] > atOnce {
		h.Errorf("that is late")
	}
}

// An owner stays: what runs there leaves with what it has reached, and goes on elsewhere. When he has gone the machine is lent again.
func (h *desktops) ownerStays() {
	d := h.desks[0]
	on := h.at(d)
	d.freeze()
	came := time.Now()
	gone := func() bool {
		d.key()
		return len(d.groups()) == 0
	}
	h.awaitFor(starved, "the tasks have left "+d.name, gone)
	left := time.Since(came)
	h.awaitFor(starved, "they run on the server", func() bool {
		d.key()
		return h.where()["server"] == len(on)
	})
	h.Logf("%d tasks have left after %v, and run elsewhere after %v", len(on), left.Round(time.Millisecond), time.Since(came).Round(time.Millisecond))
	for c, attempt := range on {
		if now := h.show(c.id); now.Attempt != attempt+1 {
			h.Errorf("%s is in attempt %d after %d", c.name, now.Attempt, attempt)
		}
		c.gate.open()
	}
	h.full()
}

// An owner says no, by a name that his file knows; nobody else may, and his yes lets tasks come again.
func (h *desktops) ownerSaysNo() {
	d, owner := h.desks[1], user{65534, 65534}
	if out, ok := d.on(someone, "pause", "1h"); ok || !strings.Contains(out, "owner") {
		h.Errorf("somebody paused a machine that is not his: %s", out)
	}
	groups := d.groups()
	before := time.Now()
	out, ok := d.on(owner, "pause", "1h", "--reason", "a talk")
	took := time.Since(before)
	if !ok || cgroup.Standing(groups) != len(groups) || len(groups) == 0 {
		h.Fatalf("roost pause: %v, %d of %d tasks stand still\n%s", ok, cgroup.Standing(groups), len(groups), out)
	}
	h.Logf("roost pause: %v: %s", took.Round(time.Millisecond), strings.TrimSpace(out))
	if out, _ := d.on(someone, "mine"); !strings.Contains(out, "paused until ") || !strings.Contains(out, "a talk") || strings.Count(out, "suspended") < 1 {
		h.Errorf("roost mine:\n%s", out)
	}
	if out, ok := d.on(someone, "resume"); ok {
		h.Errorf("somebody lent a machine that is not his: %s", out)
	}
	h.awaitFor(starved, "the tasks have left "+d.name, func() bool { return len(d.groups()) == 0 && h.where()[d.name] == 0 })
	asked := h.count("asked", endless, "priority = 9\n  requirements = \"TARGET.Name == \\\"desk2\\\"\"") // it comes before those that have left
	h.tasks = append(h.tasks, asked)
	h.awaitFor(starved, "roost why names the pause", func() bool {
		why, _, _ := h.as(someone, "why", asked.id)
		return strings.Contains(why, "paused")
	})
	if now := h.show(asked.id); now.State != "idle" {
		h.Errorf("a task is %s on a machine that is paused", now.State)
	}
	if out, ok := d.on(owner, "resume"); !ok {
		h.Errorf("roost resume: %s", out)
	}
	h.awaitFor(starved, "the machine is lent again", func() bool { return h.show(asked.id).State == "running" })
	h.full()
}

// A startd that hangs is no way around the owner: the guard's own hand stops what runs there. A pause works, too, and so does the way back.
func (h *desktops) startdHangs() {
	d := h.desks[0]
	on := h.at(d)
	d.signal("startd", syscall.SIGSTOP)
	h.Logf("with the startd stopped, from a key until its tasks stand still: %v", d.freeze().Round(time.Millisecond))
	d.dead(time.Second)
	out, ok := d.on(root, "pause", "for", "good")
	if !ok || !d.stands() {
		h.Errorf("roost pause: %s", out)
	}
	if out, ok := d.on(root, "mine"); !ok || !strings.Contains(out, "paused for good") {
		h.Errorf("roost mine:\n%s", out)
	}
	if out, ok := d.on(root, "resume"); !ok {
		h.Errorf("roost resume: %s", out)
	}
	d.signal("startd", syscall.SIGCONT)
	d.goesOn()
	h.same(on)
}

// A key while no startd is there stops its tasks, and the next startd leaves them so until the owner has gone.
func (h *desktops) startdIsKilledThere() {
	d := h.desks[0]
	on := h.at(d)
	before := d.signal("startd", syscall.SIGKILL)
	h.Logf("with the startd killed, from a key until its tasks stand still: %v", d.freeze().Round(time.Millisecond))
	d.another("startd", before)
	d.dead(time.Second)
	d.goesOn()
	h.same(on)
}

// The next guard sees who is there, and what the last has left.
func (h *desktops) guardIsKilled() {
	d := h.desks[1]
	on := h.at(d)
	before := d.signal("guard", syscall.SIGKILL)
	d.another("guard", before)
	h.Logf("with a new guard, from a key until its tasks stand still: %v", d.freeze().Round(time.Millisecond))
	d.dead(time.Second)
	d.goesOn()
	h.same(on)
}

// A desktop is cut off from all others for less than a lease while its owner is there: the tasks notice nothing of it.
func (h *desktops) desktopIsCutOff() {
	d := h.desks[1]
	on := h.at(d)
	d.freeze()
	h.net.cut(d.name)
	d.dead(time.Second)
	d.goesOn()
	h.net.mend(d.name)
	rest(h.Context(), time.Second)
	h.same(on)
}

// A desktop falls asleep, from one moment to the next for all that runs there: its clock goes on, and nothing else.
func (h *desktops) desktopSleeps() {
	h.asleep = h.desks[2]
	h.slept = h.at(h.asleep)
	h.asleep.freeze() // as its guard does when it hears that sleep is near
	h.pids = processes(h.net.space(h.asleep.name))
	for _, pid := range h.pids {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
}

// It wakes after the leases of what ran there: nothing of it goes on there, and all of it is done elsewhere, once.
func (h *desktops) desktopWakes() {
	for _, c := range h.tasks {
		if h.show(c.id).Node == "server" {
			c.gate.open() // there is room elsewhere
		}
	}
	for c, attempt := range h.slept {
		h.awaitFor(starved, c.name+" runs elsewhere", func() bool {
			now := h.show(c.id)
			return now.Attempt > attempt && (now.State == "running" || now.State == "completed") // it may have been there, and told to end
		})
	}
	for _, pid := range h.pids {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	d := h.asleep
	h.asleep = nil
	h.lent()
	h.awaitFor(starved, "nothing of what ran before the sleep is left", func() bool { return len(d.groups()) <= h.where()[d.name] })
}

// finish has all tasks end, and holds what they wrote against the promises.
func (h *desktops) finish() {
	h.Helper()
	conn, err := rpc.Dial("unix:"+filepath.Join(h.nodes["submit"].dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	for _, c := range h.tasks {
		c.gate.open()
	}
	moved, twice := 0, 0
	for _, c := range h.tasks {
		h.awaitFor(starved, c.name+" ends (P9)", func() bool { return h.show(c.id).State == "completed" })
		t, machines := h.right(c, h.events(client, c.id))
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
		out, _ := d.on(root, "mine", "--json")
		json.Unmarshal([]byte(out), &mine)
		h.Logf("%s: stopped %d times, at worst within %.1f ms", d.name, mine.Today.Interruptions, 1000*mine.Today.Worst)
	}
}
