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

// day is what happens at the desktops while their owners come and go as they like.
type day struct {
	*desktops
	rng *rand.Rand

	mu     sync.Mutex
	keys   map[string][]time.Time // when somebody pressed a key, by desktop
	pauses map[string][]span      // when a desktop was paused
	counts map[string]int         // what happened how often
}

// span is some time of a desktop.
type span struct{ from, to time.Time }

// TestOwners has three people come and go at random, touch a key in passing, stay and type, say no and yes, while jobs flow, startds and guards are killed and
// cables are pulled; for so many minutes as ROOST_OWNER_MINUTES says. Whatever they do, nothing runs on a machine whose owner is there, and no work is lost
// or done twice.
func TestOwners(t *testing.T) {
	length := 10 * time.Second
	if n, err := strconv.ParseFloat(os.Getenv("ROOST_OWNER_MINUTES"), 64); err == nil {
		length = time.Duration(n * float64(time.Minute))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	h := &day{
		desktops: startDesktops(t), rng: rand.New(rand.NewPCG(seed, 2)),
		keys: map[string][]time.Time{}, pauses: map[string][]span{}, counts: map[string]int{},
	}
	end := time.Now().Add(length)
	var all sync.WaitGroup
	for _, d := range h.desks {
		rng := rand.New(rand.NewPCG(seed, h.rng.Uint64()))
		all.Go(func() { h.live(d, rng, end) })
	}
	all.Go(func() { h.harm(rand.New(rand.NewPCG(seed, 3)), end) })
	h.work(end)
	all.Wait()
	if t.Failed() {
		h.tell()
		return
	}
	ended := time.Now()
	h.settle()
	t.Logf("everything has ended %v after the last owner went", time.Since(ended).Round(time.Millisecond))
	h.audit()
	if t.Failed() {
		h.tell()
	}
}

// did counts something.
func (h *day) did(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what]++
}

// press presses a key on a desktop.
func (h *day) press(d *desk) {
	at := time.Now()
	if err := d.terminal.Type(); err != nil {
		h.Errorf("%s: %v", d.name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keys[d.name] = append(h.keys[d.name], at)
}

// between is some time of so many milliseconds.
func between(rng *rand.Rand, least, most int) time.Duration {
	return time.Duration(least+rng.IntN(most-least)) * time.Millisecond
}

// live is what an owner does.
func (h *day) live(d *desk, rng *rand.Rand, end time.Time) {
	for time.Now().Before(end) && !h.Failed() {
		rest(h.Context(), between(rng, 500, 9000))
		switch rng.IntN(6) {
		case 0, 1:
			h.did("touches")
			h.press(d)
		case 2, 3, 4:
			h.did("visits")
			for leaves := time.Now().Add(between(rng, 1000, 15000)); time.Now().Before(leaves); {
				h.press(d)
				rest(h.Context(), between(rng, 50, 1000))
			}
		case 5:
			h.did("pauses")
			h.paused(d, between(rng, 500, 9000))
		}
	}
}

// paused keeps a desktop paused for a while.
func (h *day) paused(d *desk, length time.Duration) {
	out, ok := d.on(root, "pause", "1h")
	from := time.Now()
	if !ok {
		h.Errorf("%s: roost pause: %s", d.name, out)
	}
	rest(h.Context(), length)
	to := time.Now()
	if out, ok := d.on(root, "resume"); !ok {
		h.Errorf("%s: roost resume: %s", d.name, out)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pauses[d.name] = append(h.pauses[d.name], span{from, to})
}

// lease is that of the tasks: a cable may be out for more.
const leaseOfCount = 10 * time.Second

// harm kills daemons and pulls cables.
func (h *day) harm(rng *rand.Rand, end time.Time) {
	for {
		rest(h.Context(), between(rng, 2000, 8000))
		if !time.Now().Before(end) || h.Failed() {
			return
		}
		d := h.desks[rng.IntN(len(h.desks))]
		switch rng.IntN(6) {
		case 0, 1:
			h.killed(d, "startd")
		case 2:
			h.killed(d, "guard")
		case 3:
			h.did("cables of the central manager")
			h.cutFor("central", between(rng, 500, 6000))
		case 4:
			h.did("cables, for less than a lease")
			h.cutFor(d.name, between(rng, 500, int(leaseOfCount.Milliseconds())/2))
		case 5:
			if length := leaseOfCount + between(rng, 1000, 5000); time.Now().Add(length).Before(end) {
				h.did("cables, for more than a lease")
				h.cutFor(d.name, length)
			}
		}
	}
}

func (h *day) killed(d *desk, role string) {
	if pid := d.daemon(role); pid > 1 {
		h.did(role + "s killed")
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (h *day) cutFor(host string, length time.Duration) {
	h.net.cut(host)
	rest(h.Context(), length)
	h.net.mend(host)
}

// inFlight is how many tasks are kept in the queue, or running.
const inFlight = 9

// work submits tasks so that there is always something to do.
func (h *day) work(end time.Time) {
	open := []*counted{}
	for time.Now().Before(end) && !h.Failed() {
		for len(open) < inFlight {
			c := h.count(fmt.Sprintf("count%d", len(h.tasks)+1), 40+h.rng.IntN(300), "")
			h.tasks = append(h.tasks, c)
			open = append(open, c)
		}
		rest(h.Context(), 500*time.Millisecond)
		open = slices.DeleteFunc(open, func(c *counted) bool { return h.show(c.id).State == "completed" })
	}
}

// settle waits until everything has ended with no hand laid on (P9). Where others keep the machine busy, before whose work that of a desktop's tasks never
// comes, they may take thirty times as long.
func (h *day) settle() {
	h.Helper()
	limit := starved
	if others := load(); others > float64(2*runtime.NumCPU()) {
		limit *= 30
		h.Logf("the load of this machine is %.1f: tasks have %v to end, not %v", others, limit, starved)
	}
	late := time.Now().Add(limit)
	for _, c := range h.tasks {
		h.awaitFor(time.Until(late), c.name+" ends (P9)", func() bool { return h.show(c.id).State == "completed" })
	}
}

// load is the average number of processes of the last minute that would run.
func load() (average float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Sscan(string(text), &average)
	return average
}

// audit holds what the tasks wrote against what the owners did, and against the promises.
func (h *day) audit() {
	h.Helper()
	conn, err := rpc.Dial("unix:"+filepath.Join(h.nodes["submit"].dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	twice, several, steps := 0, 0, map[string][]written{}
	for _, c := range h.tasks {
		events := h.events(client, c.id)
		t, machines := h.right(c, events)
		if twice += t; machines > 1 {
			several++
		}
		for _, s := range h.steps(c) {
			steps[s.node] = append(steps[s.node], written{s, c, events})
		}
	}
	var late []time.Duration
	total := 0
	for _, d := range h.desks {
		slices.SortFunc(steps[d.address], func(a, b written) int { return a.at.Compare(b.at) })
		total += len(steps[d.address])
		late = append(late, h.respected(d, steps[d.address])...)
	}
	h.Logf("%v", h.counts)
	h.Logf("%d tasks, %d of them on more than one machine; %d steps at the desktops, %d at the server, %d done twice", len(h.tasks), several, total, len(steps["10.111.0.11"]), twice)
	h.Logf("the last step of a task after a key that found some running: %s", delays(late))
	if total == 0 || len(late) == 0 {
		h.Error("that is too little to say anything")
	}
}

// written is a step, and the task that it is of.
type written struct {
	step
	by     *counted
	events []*wire.JobEvent
}

// running is how far a step is back at most of a task that runs.
const running = 200 * time.Millisecond

// respected holds that nothing ran at a desktop while its owner was there, and returns how long the last step of a task came after a key that found some
// running, 0 where none came. Steps are sorted.
func (h *day) respected(d *desk, steps []written) (late []time.Duration) {
	keys := h.keys[d.name]
	from := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(steps, at, func(s written, at time.Time) int { return s.at.Compare(at) })
		return i
	}
	said := map[*counted]bool{}
	for _, key := range keys {
		quiet := key.Add(resumeAfter - 100*time.Millisecond) // until then nothing may go on
		first, worst := from(key), time.Duration(0)
		for _, s := range steps[first:] {
			if !s.at.Before(quiet) {
				break
			}
			if worst = s.at.Sub(key); worst > atOnce && !said[s.by] {
				said[s.by] = true
				h.Errorf("%s: %s counted %d at %s, %v after a key\n%s", d.name, s.by.name, s.n, clock(s.at), worst, story(s.events))
			}
		}
		if first > 0 && key.Sub(steps[first-1].at) < running {
			late = append(late, worst)
		}
	}
	for _, p := range h.pauses[d.name] {
		if first := from(p.from); first < len(steps) && steps[first].at.Before(p.to) {
			h.Errorf("%s: %s counted %v after roost pause had returned", d.name, steps[first].by.name, steps[first].at.Sub(p.from))
		}
	}
	return late
}
