package jobs

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
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// topInterval is how often the picture is drawn anew.
const topInterval = 2 * time.Second

// maxTop bounds how many tasks are looked at, the newest.
const maxTop = 10_000

// TopCommand returns roost top: show what running tasks use.
func TopCommand() *frame.Command {
	return &frame.Command{
		Name: "top", Group: frame.GroupSee, Summary: "show what running tasks use", Synopsis: "[JOB…]", MaxOperands: -1,
		Run: showTop,
		Description: "Shows what your running tasks use of what they asked for: cores, memory, GPUs, disk, and what " +
			"they read and write. On a terminal the picture is drawn anew every two seconds until Ctrl-C; elsewhere " +
			"it is printed once, with the cores used on average since the start. " + selectors,
		Examples: []frame.Example{
			{Line: "roost top", Description: "your running tasks, the busiest first"},
			{Line: "roost top --all --sort memory", Description: "everybody's, the largest first"},
			{Line: "roost top --once last[7]", Description: "one task, once"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "tasks of all users"},
			&ucli.BoolFlag{Name: "once", Usage: "print it once and end"},
			&ucli.StringFlag{Name: "sort", Usage: "order by `KEY`: cpu, memory, gpu, disk, io, time, id", Value: "cpu"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` tasks; 0 for all that fit"},
			frame.JSONFlag(),
		},
	}
}

// taskRates is one running task with the rates that follow from its last two
// measurements.
type taskRates struct {
	*scheddapi.JobStatus
	cores       float64 // kept busy
	read, write float64 // bytes a second
	isMeasured  bool    // something was measured
}

// taskRatesOf computes rates from the previous sample of the same attempt, or else since
// the task's start.
func taskRatesOf(now, before *scheddapi.JobStatus) taskRates {
	g := taskRates{JobStatus: now, isMeasured: now.GetUsage() != nil}
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
func topKeys() map[string]func(a, b taskRates) int {
	return map[string]func(a, b taskRates) int{
		"cpu":    func(a, b taskRates) int { return cmp.Compare(b.cores, a.cores) },
		"memory": func(a, b taskRates) int { return cmp.Compare(b.GetUsage().GetMemory(), a.GetUsage().GetMemory()) },
		"gpu":    func(a, b taskRates) int { return cmp.Compare(b.GetUsage().GetGpu(), a.GetUsage().GetGpu()) },
		"disk":   func(a, b taskRates) int { return cmp.Compare(b.GetUsage().GetDisk(), a.GetUsage().GetDisk()) },
		"io":     func(a, b taskRates) int { return cmp.Compare(b.read+b.write, a.read+a.write) },
		"time":   func(a, b taskRates) int { return cmp.Compare(a.GetStarted(), b.GetStarted()) },
		"id":     func(taskRates, taskRates) int { return 0 },
	}
}

// topView is one call of top.
type topView struct {
	*frame.Invocation
	sel       *scheddapi.Selection
	order     func(a, b taskRates) int
	lastRates map[string]*scheddapi.JobStatus // of each task, the measurement before
	cores     map[string]taskRates            // and what followed from it, while there is no newer one
	missing   []frame.UnreachableSchedd       // schedds that did not answer last time
}

func showTop(c *frame.Invocation) error {
	m := &topView{Invocation: c, lastRates: map[string]*scheddapi.JobStatus{}, cores: map[string]taskRates{}}
	m.sel = &scheddapi.Selection{Selectors: c.Args, Mine: !c.Flag("all") && len(c.Args) == 0,
		States: []string{"running", "suspended"}}
	var ok bool
	if m.order, ok = topKeys()[c.StringFlag("sort")]; !ok {
		return frame.WithHint(frame.UsageErrorf("--sort: %q is nothing to order by", c.StringFlag("sort")),
			"use cpu, memory, gpu, disk, io, time or id")
	}
	tasks, err := m.queryTasks()
	switch {
	case err != nil:
		return err
	case c.WantsJSON():
		return m.printJSON(tasks)
	case c.Flag("once") || !c.OutScreen.Terminal:
		c.PrintUnreachable(m.missing)
		if len(tasks) == 0 {
			fmt.Fprintln(c.Stderr, "nothing is running")
			return nil
		}
		io.WriteString(c.Stdout, m.render(tasks, c.CountFlag("limit")))
		return nil
	}
	return m.runLive(tasks)
}

// queryTasks asks all schedds what runs, in order. The cell's own queue is one of them.
func (m *topView) queryTasks() ([]taskRates, error) {
	found, missing, err := m.QueryPool("", &scheddapi.QueryRequest{Selection: m.sel, Tasks: true, Limit: maxTop})
	if err != nil {
		return nil, err
	}
	m.missing = missing
	seen := make(map[string]*scheddapi.JobStatus, len(found))
	var tasks []taskRates
	for _, s := range found {
		if state := document.StateOf(s); state != roost.Running.String() && state != roost.Suspended.String() {
			continue
		}
		g, id := taskRatesOf(s, m.lastRates[s.GetId()]), s.GetId()
		if before, ok := m.lastRates[id]; ok && before.GetUsage().GetTime() == s.GetUsage().GetTime() &&
			before.GetAttempt() == s.GetAttempt() {
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
	m.lastRates = seen
	slices.SortStableFunc(tasks, func(a, b taskRates) int {
		return cmp.Or(m.order(a, b), compareIDs(a.GetId(), b.GetId()))
	})
	return tasks, nil
}

// compareIDs orders ids by their numbers: 9 before 10, and 3[2] before 3[10].
func compareIDs(a, b string) int {
	return cmp.Or(cmp.Compare(len(jobNumberOf(a)), len(jobNumberOf(b))),
		strings.Compare(jobNumberOf(a), jobNumberOf(b)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// jobNumberOf is the number of a job at the beginning of an id.
func jobNumberOf(id string) string {
	if i := strings.IndexAny(id, "[."); i >= 0 {
		return id[:i]
	}
	return id
}

// runLive draws the picture in place until somebody has seen enough.
func (m *topView) runLive(tasks []taskRates) error {
	signals, release := m.NotifyInterrupts()
	defer release()
	tick := time.NewTicker(topInterval)
	defer tick.Stop()
	drawn := 0
	for {
		height := m.readWindowSize()
		limit := max(height-4, 1) // what else is in the picture, and the line that the cursor is on
		if n := m.CountFlag("limit"); n > 0 {
			limit = min(limit, n)
		}
		text := m.render(tasks, limit)
		fmt.Fprint(m.Stdout, eraseLines(drawn), text)
		drawn = strings.Count(text, "\n")
		select {
		case <-tick.C:
		case <-signals:
			return nil
		case <-m.Context.Done():
			return nil
		}
		var err error
		if tasks, err = m.queryTasks(); err != nil {
			return err
		}
	}
}

// eraseLines goes back over so many lines and clears them (ECMA-48: CPL, ED).
func eraseLines(lines int) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dF\x1b[J", lines)
}

// readWindowSize takes the size of the window, which may have changed, and returns its
// height.
func (m *topView) readWindowSize() int {
	if f, ok := m.Stdout.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			m.OutScreen.Width = w
			return h
		}
	}
	return 24
}

// render writes a line of totals and a table of at most limit tasks; 0 for no bound.
func (m *topView) render(tasks []taskRates, limit int) string {
	var b bytes.Buffer
	line := m.summaryLine(tasks)
	for _, s := range m.missing {
		line += "   without " + s.Node
	}
	if m.OutScreen.Width > 0 {
		line = frame.TruncateText(line, m.OutScreen.Width)
	}
	fmt.Fprintln(&b, m.OutScreen.ColourText(frame.Dim, line))
	shown := tasks
	if limit > 0 && len(tasks) > limit {
		shown = tasks[:limit]
	}
	m.taskTable(shown).Print(&b, m.OutScreen)
	if n := len(tasks) - len(shown); n > 0 {
		fmt.Fprintln(&b, m.OutScreen.ColourText(frame.Dim, fmt.Sprintf("… and %d more", n)))
	}
	return b.String()
}

// summaryLine is about all of them together.
func (m *topView) summaryLine(tasks []taskRates) string {
	var cores float64
	var memory roost.Bytes
	var asked roost.Resources
	for _, g := range tasks {
		cores += g.cores
		memory += roost.Bytes(g.GetUsage().GetMemory())
		r := g.GetRequest().Vector()
		asked.CPU, asked.Memory, asked.GPUs = asked.CPU+r.CPU, asked.Memory+r.Memory, asked.GPUs+r.GPUs
	}
	text := fmt.Sprintf("%s   cores %s of %v   memory %s of %s", document.Plural(len(tasks), "task"), oneDecimal(cores),
		asked.CPU, sizeText(memory), sizeText(asked.Memory))
	if asked.GPUs > 0 {
		text += fmt.Sprintf("   GPUs %d", asked.GPUs)
	}
	return text + "   " + m.Now().Format("15:04:05")
}
