package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// topEvery is how often the picture is drawn anew.
const topEvery = 2 * time.Second

// maxTop bounds how many tasks are looked at, the newest.
const maxTop = 10_000

func topCommand() *command {
	return &command{
		name: "top", group: groupSee, brief: "show what running tasks use", args: "[JOB…]", most: -1, do: showTop,
		about: "Shows what your running tasks use of what they asked for: cores, memory, GPUs, disk, and what they read and write. On a terminal the picture is drawn anew every two seconds until Ctrl-C; elsewhere it is printed once, with the cores used on average since the start. " + selectors,
		examples: []example{
			{"roost top", "your running tasks, the busiest first"},
			{"roost top --all --sort memory", "everybody's, the largest first"},
			{"roost top --once last[7]", "one task, once"},
		},
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "tasks of all users"},
			&ucli.BoolFlag{Name: "once", Usage: "print it once and end"},
			&ucli.StringFlag{Name: "sort", Usage: "order by `KEY`: cpu, memory, gpu, disk, io, time, id", Value: "cpu"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` tasks; 0 for all that fit"},
			jsonFlag(),
		},
	}
}

// gauge is one running task with the rates that follow from its last two measurements.
type gauge struct {
	*wire.JobStatus
	cores       float64 // kept busy
	read, write float64 // bytes a second
	known       bool    // something was measured
}

// rates compares a task with how it was before, if it is the same attempt and was measured again; else it is the average since its start.
func rates(now, before *wire.JobStatus) gauge {
	g := gauge{JobStatus: now, known: now.GetUsage() != nil}
	u, old := now.GetUsage(), before.GetUsage()
	if before.GetAttempt() != now.GetAttempt() || u.GetWall() <= old.GetWall() {
		old = nil
	}
	wall := float64(u.GetWall() - old.GetWall())
	if wall <= 0 {
		return g
	}
	g.cores = max(float64(u.GetUserCpu()+u.GetSystemCpu()-old.GetUserCpu()-old.GetSystemCpu())/wall, 0)
	g.read = max(float64(u.GetReadBytes()-old.GetReadBytes())/wall*1e9, 0)
	g.write = max(float64(u.GetWriteBytes()-old.GetWriteBytes())/wall*1e9, 0)
	return g
}

// topKeys order tasks; equal ones stand by their ids.
func topKeys() map[string]func(a, b gauge) int {
	return map[string]func(a, b gauge) int{
		"cpu":    func(a, b gauge) int { return cmp.Compare(b.cores, a.cores) },
		"memory": func(a, b gauge) int { return cmp.Compare(b.GetUsage().GetMemory(), a.GetUsage().GetMemory()) },
		"gpu":    func(a, b gauge) int { return cmp.Compare(b.GetUsage().GetGpu(), a.GetUsage().GetGpu()) },
		"disk":   func(a, b gauge) int { return cmp.Compare(b.GetUsage().GetDisk(), a.GetUsage().GetDisk()) },
		"io":     func(a, b gauge) int { return cmp.Compare(b.read+b.write, a.read+a.write) },
		"time":   func(a, b gauge) int { return cmp.Compare(a.GetStarted(), b.GetStarted()) },
		"id":     func(gauge, gauge) int { return 0 },
	}
}

// meter is one call of top.
type meter struct {
	*call
	sel   *wire.Selection
	order func(a, b gauge) int
	last  map[string]*wire.JobStatus // of each task, the measurement before
	cores map[string]gauge           // and what followed from it, while there is no newer one
}

func showTop(c *call) error {
	m := &meter{call: c, last: map[string]*wire.JobStatus{}, cores: map[string]gauge{}}
	m.sel = &wire.Selection{Selectors: c.args, Mine: !c.flag("all") && len(c.args) == 0, States: []string{"running", "suspended"}}
	var ok bool
	if m.order, ok = topKeys()[c.text("sort")]; !ok {
		return advise(usage("--sort: %q is nothing to order by", c.text("sort")), "use cpu, memory, gpu, disk, io, time or id")
	}
	tasks, err := m.look()
	switch {
	case err != nil:
		return err
	case c.json():
		return m.printJSON(tasks)
	case c.flag("once") || !c.out.terminal:
		if len(tasks) == 0 {
			fmt.Fprintln(c.stderr, "nothing is running")
			return nil
		}
		io.WriteString(c.stdout, m.picture(tasks, c.count("limit")))
		return nil
	}
	return m.live(tasks)
}

// look asks what runs, in order.
func (m *meter) look() ([]gauge, error) {
	found, err := m.query(&wire.QueryRequest{Selection: m.sel, Tasks: true, Limit: maxTop})
	if err != nil {
		return nil, err
	}
	seen := make(map[string]*wire.JobStatus, len(found))
	var tasks []gauge
	for _, s := range found {
		if state := stateOf(s); state != roost.Running.String() && state != roost.Suspended.String() {
			continue
		}
		g, id := rates(s, m.last[s.GetId()]), s.GetId()
		if before, ok := m.last[id]; ok && before.GetUsage().GetTime() == s.GetUsage().GetTime() && before.GetAttempt() == s.GetAttempt() {
			old := m.cores[id] // not measured again since
			g.cores, g.read, g.write = old.cores, old.read, old.write
		}
		seen[id], m.cores[id] = s, g
		tasks = append(tasks, g)
	}
	for id := range m.cores {
		if seen[id] == nil {
			delete(m.cores, id)
		}
	}
	m.last = seen
	slices.SortStableFunc(tasks, func(a, b gauge) int { return cmp.Or(m.order(a, b), byID(a.GetId(), b.GetId())) })
	return tasks, nil
}

// byID orders ids by their numbers: 9 before 10, and 3[2] before 3[10].
func byID(a, b string) int {
	return cmp.Or(cmp.Compare(len(head(a)), len(head(b))), strings.Compare(head(a), head(b)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// head is the number of a job at the beginning of an id.
func head(id string) string {
	if i := strings.IndexAny(id, "[."); i >= 0 {
		return id[:i]
	}
	return id
}

// live draws the picture in place until somebody has seen enough.
func (m *meter) live(tasks []gauge) error {
	signals, release := m.interrupted()
	defer release()
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	drawn := 0
	for {
		height := m.measure()
		limit := max(height-4, 1) // what else is in the picture, and the line that the cursor is on
		if n := m.count("limit"); n > 0 {
			limit = min(limit, n)
		}
		text := m.picture(tasks, limit)
		fmt.Fprint(m.stdout, erase(drawn), text)
		drawn = strings.Count(text, "\n")
		select {
		case <-tick.C:
		case <-signals:
			return nil
		case <-m.ctx.Done():
			return nil
		}
		var err error
		if tasks, err = m.look(); err != nil {
			return err
		}
	}
}

// erase goes back over so many lines and clears them (ECMA-48: CPL, ED).
func erase(lines int) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dF\x1b[J", lines)
}

// measure takes the size of the window, which may have changed, and returns its height.
func (m *meter) measure() int {
	if f, ok := m.stdout.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			m.out.width = w
			return h
		}
	}
	return 24
}

// picture is a line that sums up, and a table with a line for each task, at most limit of them where it is above 0.
func (m *meter) picture(tasks []gauge, limit int) string {
	var b bytes.Buffer
	line := m.summary(tasks)
	if m.out.width > 0 {
		line = shorten(line, m.out.width)
	}
	fmt.Fprintln(&b, m.out.paint(dim, line))
	shown := tasks
	if limit > 0 && len(tasks) > limit {
		shown = tasks[:limit]
	}
	m.table(shown).print(&b, m.out)
	if n := len(tasks) - len(shown); n > 0 {
		fmt.Fprintln(&b, m.out.paint(dim, fmt.Sprintf("… and %d more", n)))
	}
	return b.String()
}

// summary is about all of them together.
func (m *meter) summary(tasks []gauge) string {
	var cores float64
	var memory roost.Bytes
	var asked roost.Resources
	for _, g := range tasks {
		cores += g.cores
		memory += roost.Bytes(g.GetUsage().GetMemory())
		r := g.GetRequest().Vector()
		asked.CPU, asked.Memory, asked.GPUs = asked.CPU+r.CPU, asked.Memory+r.Memory, asked.GPUs+r.GPUs
	}
	text := fmt.Sprintf("%s   cores %s of %v   memory %s of %s", plural(len(tasks), "task"), decimal(cores), asked.CPU, size(memory), size(asked.Memory))
	if asked.GPUs > 0 {
		text += fmt.Sprintf("   GPUs %d", asked.GPUs)
	}
	return text + "   " + m.now().Format("15:04:05")
}
