package sim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/workload"
	"github.com/roost-batch/roost/internal/suggest"
)

// eventPrinter prints changes of a pool.
type eventPrinter struct {
	out         io.Writer
	printAll    bool // of them
	printAllNow bool // for now all
	changeCount int  // changes so far
}

func (e *eventPrinter) printEvents(s audit.Event) {
	if e.changeCount++; e.printAll || e.printAllNow {
		fmt.Fprintf(e.out, "%12s  %v\n", audit.ClockText(s.At), s)
	}
}

// poolDebugger plays a pool under commands, one a line, as a debugger does (Fauxmaster:
// Verma et al., EuroSys 2015, §3.1).
type poolDebugger struct {
	*simResult
	c           *frame.Invocation
	printer     *eventPrinter
	out         *bufio.Writer
	playedUntil time.Duration // until when it has been played
	badCommands int           // commands that made no sense
}

// maxRows is how many jobs or machines are listed.
const maxRows = 50

// pauseCommands are those that there are. The first of several that begin alike is meant
// by their beginning.
var pauseCommands = [...]struct{ name, does string }{
	{"step [N]", "go on until something changes, or N times that, and print what changes"},
	{"step TIME", "go on for that long, as in step 90s or step 1h30m"},
	{"until TIME", "go on until so long after the beginning"},
	{"run", "go on to the end"},
	{"show", "how the pool stands"},
	{"jobs [WORD]", "the jobs that are not over, or those whose id, name or user contains WORD"},
	{"machines [WORD]", "the machines on which something runs, or those whose name contains WORD"},
	{"quit", "leave, and print the result; so does the end of the input"},
	{"help", "this"},
}

// maxPauseLine bounds a command of a paused run, in bytes.
const maxPauseLine = 1 << 20

// readCommands does one command after the other.
func (x *poolDebugger) readCommands() error {
	f, isFile := x.c.Stdin.(*os.File)
	prompt := isFile && frame.ScreenOf(f).Terminal
	ask := func() error {
		if prompt {
			fmt.Fprintf(x.out, "%s> ", audit.ClockText(x.playedUntil))
		}
		return x.out.Flush()
	}
	lines := bufio.NewScanner(x.c.Stdin)
	lines.Buffer(nil, maxPauseLine)
	for {
		if err := ask(); err != nil {
			return err
		}
		if !lines.Scan() {
			break
		}
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		quit, err := x.runCommand(words)
		if err != nil {
			if !prompt {
				x.badCommands++
			}
			if err := x.out.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(x.c.Stderr, err)
		}
		if quit {
			return nil
		}
	}
	if prompt {
		fmt.Fprintln(x.out)
	}
	return lines.Err()
}

// pauseCommandName is the name of the command that a word means.
func pauseCommandName(word string) (string, error) {
	var known []string
	for _, c := range pauseCommands {
		if name, _, _ := strings.Cut(c.name, " "); !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	for _, name := range known {
		if strings.HasPrefix(name, strings.ToLower(word)) {
			return name, nil
		}
	}
	if near := suggest.Nearest(word, known); near != "" {
		return "", fmt.Errorf("%s: there is no such command; did you mean %s?", document.PrintableText(word), near)
	}
	return "", fmt.Errorf("%s: there is no such command; there are %s", document.PrintableText(word),
		strings.Join(known, ", "))
}

// runCommand does one command. The error is what to say of one that makes no sense.
func (x *poolDebugger) runCommand(words []string) (quit bool, err error) {
	name, err := pauseCommandName(words[0])
	if err != nil {
		return false, err
	}
	args := words[1:]
	most := map[string]int{"step": 1, "until": 1, "jobs": 1, "machines": 1}[name]
	switch {
	case len(args) > most:
		return false, fmt.Errorf("%s: %s is too much; try help", name, document.PrintableText(args[most]))
	case name == "until" && len(args) == 0:
		return false, fmt.Errorf("until: when? As in until 90s, or until 2d, after the beginning")
	}
	word := strings.ToLower(strings.Join(args, ""))
	switch name {
	case "step":
		return false, x.advanceBy(word)
	case "until":
		at, err := roost.ParseDuration(word)
		if err != nil || at <= x.playedUntil {
			return false, fmt.Errorf("until %s: that is no time after %s, at which it stands",
				document.PrintableText(word),
				audit.ClockText(x.playedUntil))
		}
		x.advanceTo(at)
	case "run":
		x.advanceTo(x.endTime)
	case "show":
		x.printStatus()
	case "jobs":
		x.printJobs(word)
	case "machines":
		x.printMachines(word)
	case "help":
		for _, c := range pauseCommands {
			fmt.Fprintf(x.out, "  %-15s  %s\n", c.name, c.does)
		}
	}
	return name == "quit", nil
}

// advanceBy goes on by so many changes, or so long.
func (x *poolDebugger) advanceBy(word string) error {
	n, err := strconv.Atoi(word)
	if word == "" {
		n, err = 1, nil
	}
	if err == nil && n > 0 {
		x.printer.printAllNow = true
		goal := x.printer.changeCount + n
		x.isStuck = x.advance(x.endTime, x.out, func() bool { return x.printer.changeCount >= goal })
		x.printer.printAllNow, x.playedUntil = false, max(x.playedUntil, x.pool.Now())
		if x.printer.changeCount < goal {
			x.endText()
		}
		return nil
	}
	d, err := roost.ParseDuration(word)
	if err != nil || d <= 0 {
		return fmt.Errorf("step %s: that is neither a number of changes nor a length of time, as in step 3 or step 90s",
			document.PrintableText(word))
	}
	x.advanceTo(min(x.playedUntil+d, x.endTime))
	return nil
}

// advanceTo goes on until an instant, and says how the pool stands then.
func (x *poolDebugger) advanceTo(at time.Duration) {
	at = min(at, x.endTime)
	x.isStuck = x.advance(at, x.out, func() bool { return false })
	if x.playedUntil = max(x.playedUntil, x.pool.Now()); !x.pool.AllEnded() && !x.isStuck && at < pool.ForEver {
		x.playedUntil = max(x.playedUntil, at)
	}
	if x.statusLine(x.out, x.playedUntil); x.pool.AllEnded() || x.isStuck || x.playedUntil >= x.endTime {
		x.endText()
	}
}

// endText prints why the pool does not go on.
func (x *poolDebugger) endText() {
	switch {
	case x.pool.AllEnded():
		fmt.Fprintln(x.out, "all jobs are over")
	case x.isStuck:
		fmt.Fprintf(x.out, "nothing has begun or ended for %s, and nothing that would change that is to come; until "+
			"goes on all the same\n", durationText(stuckTime))
	default:
		fmt.Fprintf(x.out, "this is as far as --until lets it go\n")
	}
}

// printStatus is how the pool stands.
func (x *poolDebugger) printStatus() {
	x.statusLine(x.out, x.playedUntil)
	s := x.pool.Sample()
	for _, who := range x.history.Owners {
		fmt.Fprintf(x.out, "  %-16s  %v cores\n", document.PrintableText(who), s.UsedByOwner[who])
	}
	if w := workload.SummarizeWaits(x.pool.StartWaits()); w.Tasks > 0 {
		fmt.Fprintf(x.out, "  %s that began had waited for %s on the mean, the longest for %s\n",
			document.Plural(w.Tasks, "task"), durationText(w.Mean), durationText(w.Max))
	}
}

// printOmitted says how many rows were not shown.
func (x *poolDebugger) printOmitted(rows, all int, what string) {
	switch {
	case all == 0:
		fmt.Fprintf(x.out, "no %s\n", what)
	case all > rows:
		fmt.Fprintf(x.out, "and %d more; with a word: those that contain it\n", all-rows)
	}
}

// printJobs lists jobs.
func (x *poolDebugger) printJobs(word string) {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "ID"}, {Head: "NAME"}, {Head: "USER"},
		{Head: "COMES", RightAligned: true}, {Head: "WAITING", RightAligned: true},
		{Head: "RUNNING", RightAligned: true}, {Head: "OVER", RightAligned: true}, {Head: "NOTE"}}}
	all := 0
	for i, o := range x.pool.Outcomes() {
		j := &x.config.Jobs[i]
		name, _ := j.Spec.Ad.Str(roost.AttrJobName)
		id, note := "-", ""
		count := max(j.Spec.Count, 1)
		waiting, over := o.Unfinished-o.Running, count-o.Unfinished
		switch {
		case o.Refused != nil:
			waiting, over, note = 0, 0, "refused: "+o.Refused.Error()
		case o.ID.IsZero():
			waiting, over, note = 0, 0, "to come"
		default:
			id = o.ID.String()
		}
		if word == "" && (o.Refused != nil || !o.ID.IsZero() && o.Unfinished == 0) {
			continue
		}
		if word != "" && !strings.Contains(strings.ToLower(id+" "+name+" "+j.Owner), word) {
			continue
		}
		if all++; all > maxRows {
			continue
		}
		t.AddRow(frame.TableCell{Text: id}, frame.TableCell{Text: document.PrintableText(name)},
			frame.TableCell{Text: document.PrintableText(j.Owner)},
			frame.TableCell{Text: audit.ClockText(j.At)}, frame.TableCell{Text: strconv.Itoa(waiting)},
			frame.TableCell{Text: strconv.Itoa(o.Running)}, frame.TableCell{Text: strconv.Itoa(over)},
			frame.TableCell{Text: document.PrintableText(note)})
	}
	if all > 0 {
		t.DropEmptyColumns("NOTE")
		t.Print(x.out, x.c.OutScreen)
	}
	x.printOmitted(len(t.Rows), all, "such job")
}

// printMachines lists machines.
func (x *poolDebugger) printMachines(word string) {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "MACHINE"}, {Head: "CPUS FREE", RightAligned: true},
		{Head: "MEMORY FREE", RightAligned: true}, {Head: "GPUS FREE", RightAligned: true},
		{Head: "RUNNING", RightAligned: true}}}
	all := 0
	for _, m := range x.pool.Machines() {
		if word == "" && m.Running == 0 || !strings.Contains(strings.ToLower(m.Name), word) {
			continue
		}
		if all++; all > maxRows {
			continue
		}
		gpus := "-"
		if m.Total.GPUs > 0 {
			gpus = fmt.Sprintf("%d/%d", m.Available.GPUs, m.Total.GPUs)
		}
		t.AddRow(frame.TableCell{Text: document.PrintableText(m.Name)},
			frame.TableCell{Text: fmt.Sprintf("%v/%v", m.Available.CPU,
				m.Total.CPU)}, frame.TableCell{Text: fmt.Sprintf("%v/%v", m.Available.Memory, m.Total.Memory)},
			frame.TableCell{Text: gpus}, frame.TableCell{Text: strconv.Itoa(m.Running)})
	}
	if all > 0 {
		t.DropEmptyColumns("GPUS FREE")
		t.Print(x.out, x.c.OutScreen)
	}
	x.printOmitted(len(t.Rows), all, "such machine")
}
