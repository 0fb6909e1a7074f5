package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// ownerDay is the state of desktops whose owners come and go at random.
type ownerDay struct {
	*desktopPool
	rng *rand.Rand

	mu     sync.Mutex
	keys   map[string][]time.Time   // by desktop: times of key presses
	pauses map[string][]desktopSpan // by desktop: when it was paused
	counts map[string]int           // by action: how often it happened
}

// desktopSpan is a period of time.
type desktopSpan struct{ from, to time.Time }

// TestOwners simulates three owners for ROOST_OWNER_MINUTES. They come and go at random,
// press single keys, stay and type, pause and resume. Meanwhile jobs run, startds and
// guards are killed and links cut. Nothing may run on a machine whose owner is present,
// and no work may be lost or repeated.
func TestOwners(t *testing.T) {
	length := 10 * time.Second
	if n, err := strconv.ParseFloat(os.Getenv("ROOST_OWNER_MINUTES"), 64); err == nil {
		length = time.Duration(n * float64(time.Minute))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	h := &ownerDay{
		desktopPool: startDesktops(t), rng: rand.New(rand.NewPCG(seed, 2)),
		keys: map[string][]time.Time{}, pauses: map[string][]desktopSpan{}, counts: map[string]int{},
	}
	end := time.Now().Add(length)
	var all sync.WaitGroup
	for _, d := range h.desks {
		rng := rand.New(rand.NewPCG(seed, h.rng.Uint64()))
		all.Go(func() { h.simulateOwner(d, rng, end) })
	}
	all.Go(func() { h.injectFaults(rand.New(rand.NewPCG(seed, 3)), end) })
	h.submitWork(end)
	all.Wait()
	if t.Failed() {
		h.printLogs()
		return
	}
	ended := time.Now()
	h.awaitAllEnded()
	t.Logf("everything has ended %v after the last owner went", time.Since(ended).Round(time.Millisecond))
	h.auditTasks()
	if t.Failed() {
		h.printLogs()
	}
}

// countAction counts an action.
func (h *ownerDay) countAction(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

// pressKey presses a key on a desktop.
func (h *ownerDay) pressKey(d *ownedDesktop) {
	at := time.Now()
	if err := d.terminal.PressKey(); err != nil {
		h.Errorf("%s: %v", d.name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys[d.name] = append(h.keys[d.name], at)
}

// randomMillis returns a random duration in milliseconds.
func randomMillis(rng *rand.Rand, least, most int) time.Duration {
	return time.Duration(least+rng.IntN(most-least)) * time.Millisecond
}

// simulateOwner simulates an owner.
func (h *ownerDay) simulateOwner(d *ownedDesktop, rng *rand.Rand, end time.Time) {
	for time.Now().Before(end) && !h.Failed() {
		waitReal(h.Context(), randomMillis(rng, 500, 9000))
		switch rng.IntN(6) {
		case 0, 1:
			h.countAction("touches")
			h.pressKey(d)
		case 2, 3, 4:
			h.countAction("visits")
			for leaves := time.Now().Add(randomMillis(rng, 1000, 15000)); time.Now().Before(leaves); {
				h.pressKey(d)
				waitReal(h.Context(), randomMillis(rng, 50, 1000))
			}
		case 5:
			h.countAction("pauses")
			h.pauseDesktop(d, randomMillis(rng, 500, 9000))
		}
	}
}

// pauseDesktop pauses a desktop for a while.
func (h *ownerDay) pauseDesktop(d *ownedDesktop, length time.Duration) {
	out, ok := d.deskCommand(root, "pause", "1h")
	from := time.Now()
	if !ok {
		h.Errorf("%s: roost pause: %s", d.name, out)
	}
	waitReal(h.Context(), length)
	to := time.Now()
	if out, ok := d.deskCommand(root, "resume"); !ok {
		h.Errorf("%s: roost resume: %s", d.name, out)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pauses[d.name] = append(h.pauses[d.name], desktopSpan{from, to})
}

// leaseOfCount is the lease of the tasks: a link may be cut for longer.
const leaseOfCount = 10 * time.Second

// injectFaults kills daemons and cuts links.
func (h *ownerDay) injectFaults(rng *rand.Rand, end time.Time) {
	for {
		waitReal(h.Context(), randomMillis(rng, 2000, 8000))
		if !time.Now().Before(end) || h.Failed() {
			return
		}
		d := h.desks[rng.IntN(len(h.desks))]
		switch rng.IntN(6) {
		case 0, 1:
			h.daemonIsKilled(d, "startd")
		case 2:
			h.daemonIsKilled(d, "guard")
		case 3:
			h.countAction("cables of the central manager")
			h.cutCable("central", randomMillis(rng, 500, 6000))
		case 4:
			h.countAction("cables, for less than a lease")
			h.cutCable(d.name, randomMillis(rng, 500, int(leaseOfCount.Milliseconds())/2))
		case 5:
			if length := leaseOfCount + randomMillis(rng, 1000, 5000); time.Now().Add(length).Before(end) {
				h.countAction("cables, for more than a lease")
				h.cutCable(d.name, length)
			}
		}
	}
}

func (h *ownerDay) daemonIsKilled(d *ownedDesktop, role string) {
	if pid := d.daemonPID(role); pid > 1 {
		h.countAction(role + "s killed")
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (h *ownerDay) cutCable(host string, length time.Duration) {
	h.net.unplug(host)
	waitReal(h.Context(), length)
	h.net.replug(host)
}

// maxActiveTasks is the number of tasks that are queued or running.
const maxActiveTasks = 9

// submitWork submits tasks so that there is always work.
func (h *ownerDay) submitWork(end time.Time) {
	open := []*countingTask{}
	for time.Now().Before(end) && !h.Failed() {
		for len(open) < maxActiveTasks {
			c := h.submitCounter(fmt.Sprintf("count%d", len(h.tasks)+1), 40+h.rng.IntN(300), "")
			h.tasks = append(h.tasks, c)
			open = append(open, c)
		}
		waitReal(h.Context(), 500*time.Millisecond)
		open = slices.DeleteFunc(open, func(c *countingTask) bool { return h.showTask(c.id).State == "completed" })
	}
}

// awaitAllEnded waits until everything has ended without help (P9). On a machine that is
// busy with other work, which has priority over a desktop's tasks, they may take thirty
// times as long.
func (h *ownerDay) awaitAllEnded() {
	h.Helper()
	limit := starvedLimit
	if others := loadAverage(); others > float64(2*runtime.NumCPU()) {
		limit *= 30
		h.Logf("the load of this machine is %.1f: tasks have %v to end, not %v", others, limit, starvedLimit)
	}
	late := time.Now().Add(limit)
	for _, c := range h.tasks {
		h.awaitFor(time.Until(late), c.name+" ends (P9)", func() bool { return h.showTask(c.id).State == "completed" })
	}
}

// loadAverage returns the load average of the last minute.
func loadAverage() (average float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Sscan(string(text), &average)
	return average
}

// auditTasks compares what the tasks wrote with the owners' actions, and checks the
// guarantees.
func (h *ownerDay) auditTasks() {
	h.Helper()
	conn, err := rpc.Dial("unix:"+filepath.Join(h.nodes["submit"].dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	twice, several, steps := 0, 0, map[string][]writtenStep{}
	for _, c := range h.tasks {
		events := h.jobEvents(client, c.id)
		t, machines := h.checkSteps(c, events)
		if twice += t; machines > 1 {
			several++
		}
		for _, s := range h.countingSteps(c) {
			steps[s.node] = append(steps[s.node], writtenStep{s, c, events})
		}
	}
	var late []time.Duration
	total := 0
	for _, d := range h.desks {
		slices.SortFunc(steps[d.address], func(a, b writtenStep) int { return a.at.Compare(b.at) })
		total += len(steps[d.address])
		late = append(late, h.checkOwnerRespected(d, steps[d.address])...)
	}
	h.Logf("%v", h.counts)
	h.Logf("%d tasks, %d of them on more than one machine; %d steps at the desktops, %d at the server, %d done twice",
		len(h.tasks), several, total, len(steps["10.111.0.11"]), twice)
	h.Logf("the last step of a task after a key that found some running: %s", printDelays(late))
	if total == 0 || len(late) == 0 {
		h.Error("that is too little to say anything")
	}
}

// writtenStep is a step with its task.
type writtenStep struct {
	countingStep
	by     *countingTask
	events []*wire.JobEvent
}

// running is the greatest age of the last step of a running task.
const running = 200 * time.Millisecond

// checkOwnerRespected checks that nothing ran at a desktop while its owner was present.
// It returns how long after each key that found running tasks their last step came, 0 if
// none came. Steps are sorted.
func (h *ownerDay) checkOwnerRespected(d *ownedDesktop, steps []writtenStep) (late []time.Duration) {
	keys := h.keys[d.name]
	from := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(steps, at, func(s writtenStep, at time.Time) int { return s.at.Compare(at) })
		return i
	}
	reported := map[*countingTask]bool{}
	for _, key := range keys {
		quiet := key.Add(resumeAfter - 100*time.Millisecond) // no task may resume earlier
		first, worst := from(key), time.Duration(0)
		for _, s := range steps[first:] {
			if !s.at.Before(quiet) {
				break
			}
			if worst = s.at.Sub(key); worst > promptLimit && !reported[s.by] {
				reported[s.by] = true
				h.Errorf("%s: %s counted %d at %s, %v after a key\n%s", d.name, s.by.name, s.n, clockText(s.at), worst,
					jobLogText(s.events))
			}
		}
		if first > 0 && key.Sub(steps[first-1].at) < running {
			late = append(late, worst)
		}
	}
	for _, p := range h.pauses[d.name] {
		if first := from(p.from); first < len(steps) && steps[first].at.Before(p.to) {
			h.Errorf("%s: %s counted %v after roost pause had returned", d.name, steps[first].by.name,
				steps[first].at.Sub(p.from))
		}
	}
	return late
}
