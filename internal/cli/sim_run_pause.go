package cli

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
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/workload"
	"github.com/roost-batch/roost/internal/spell"
)

// onlooker prints changes of a pool.
type onlooker struct {
	out  io.Writer
	all  bool // of them
	now  bool // for now all
	seen int  // changes so far
}

func (e *onlooker) see(s audit.Seen) {
	if e.seen++; e.all || e.now {
		fmt.Fprintf(e.out, "%12s  %v\n", audit.Clock(s.At), s)
	}
}

// paused is a pool that does what it is told, a command a line, as a debugger (Fauxmaster: Verma et al., EuroSys 2015, §3.1).
type paused struct {
	*ran
	c   *call
	eye *onlooker
	out *bufio.Writer
	at  time.Duration // until when it has been played
	bad int           // commands that made no sense
}

// maxRows is how many jobs or machines are listed.
const maxRows = 50

// pauseCommands are those that there are. The first of several that begin alike is meant by their beginning.
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

// read does one command after the other.
func (x *paused) read() error {
	f, isFile := x.c.stdin.(*os.File)
	prompt := isFile && screenOf(f).terminal
	ask := func() error {
		if prompt {
			fmt.Fprintf(x.out, "%s> ", audit.Clock(x.at))
		}
		return x.out.Flush()
	}
	lines := bufio.NewScanner(x.c.stdin)
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
		quit, err := x.do(words)
		if err != nil {
			if !prompt {
				x.bad++
			}
			if err := x.out.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(x.c.stderr, err)
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

// meantByPause is the name of the command that a word means.
func meantByPause(word string) (string, error) {
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
	if near := spell.Nearest(word, known); near != "" {
		return "", fmt.Errorf("%s: there is no such command; did you mean %s?", printable(word), near)
	}
	return "", fmt.Errorf("%s: there is no such command; there are %s", printable(word), strings.Join(known, ", "))
}

// do does one command. The error is what to say of one that makes no sense.
func (x *paused) do(words []string) (quit bool, err error) {
	name, err := meantByPause(words[0])
	if err != nil {
		return false, err
	}
	args := words[1:]
	most := map[string]int{"step": 1, "until": 1, "jobs": 1, "machines": 1}[name]
	switch {
	case len(args) > most:
		return false, fmt.Errorf("%s: %s is too much; try help", name, printable(args[most]))
	case name == "until" && len(args) == 0:
		return false, fmt.Errorf("until: when? As in until 90s, or until 2d, after the beginning")
	}
	word := strings.ToLower(strings.Join(args, ""))
	switch name {
	case "step":
		return false, x.stepOn(word)
	case "until":
		at, err := roost.ParseDuration(word)
		if err != nil || at <= x.at {
			return false, fmt.Errorf("until %s: that is no time after %s, at which it stands", printable(word), audit.Clock(x.at))
		}
		x.playTo(at)
	case "run":
		x.playTo(x.until)
	case "show":
		x.show()
	case "jobs":
		x.jobs(word)
	case "machines":
		x.machines(word)
	case "help":
		for _, c := range pauseCommands {
			fmt.Fprintf(x.out, "  %-15s  %s\n", c.name, c.does)
		}
	}
	return name == "quit", nil
}

// stepOn goes on by so many changes, or so long.
func (x *paused) stepOn(word string) error {
	n, err := strconv.Atoi(word)
	if word == "" {
		n, err = 1, nil
	}
	if err == nil && n > 0 {
		x.eye.now = true
		goal := x.eye.seen + n
		x.stuck = x.play(x.until, x.out, func() bool { return x.eye.seen >= goal })
		x.eye.now, x.at = false, max(x.at, x.pool.Now())
		if x.eye.seen < goal {
			x.ended()
		}
		return nil
	}
	d, err := roost.ParseDuration(word)
	if err != nil || d <= 0 {
		return fmt.Errorf("step %s: that is neither a number of changes nor a length of time, as in step 3 or step 90s", printable(word))
	}
	x.playTo(min(x.at+d, x.until))
	return nil
}

// playTo goes on until an instant, and says how the pool stands then.
func (x *paused) playTo(at time.Duration) {
	at = min(at, x.until)
	x.stuck = x.play(at, x.out, func() bool { return false })
	if x.at = max(x.at, x.pool.Now()); !x.pool.Done() && !x.stuck && at < pool.ForEver {
		x.at = max(x.at, at)
	}
	if x.line(x.out, x.at); x.pool.Done() || x.stuck || x.at >= x.until {
		x.ended()
	}
}

// ended says why it does not go on.
func (x *paused) ended() {
	switch {
	case x.pool.Done():
		fmt.Fprintln(x.out, "all jobs are over")
	case x.stuck:
		fmt.Fprintf(x.out, "nothing has begun or ended for %s, and nothing that would change that is to come; until goes on all the same\n", moment(stuckAfter))
	default:
		fmt.Fprintf(x.out, "this is as far as --until lets it go\n")
	}
}

// show is how the pool stands.
func (x *paused) show() {
	x.line(x.out, x.at)
	s := x.pool.State()
	for _, who := range x.course.Owners {
		fmt.Fprintf(x.out, "  %-16s  %v cores\n", printable(who), s.By[who])
	}
	if w := workload.Summarise(x.pool.Waits()); w.Tasks > 0 {
		fmt.Fprintf(x.out, "  %s that began had waited for %s on the mean, the longest for %s\n", plural(w.Tasks, "task"), moment(w.Mean), moment(w.Most))
	}
}

// more says how many rows were not shown.
func (x *paused) more(rows, all int, what string) {
	switch {
	case all == 0:
		fmt.Fprintf(x.out, "no %s\n", what)
	case all > rows:
		fmt.Fprintf(x.out, "and %d more; with a word: those that contain it\n", all-rows)
	}
}

// jobs lists jobs.
func (x *paused) jobs(word string) {
	t := &table{columns: []column{{head: "ID"}, {head: "NAME"}, {head: "USER"}, {head: "COMES", right: true}, {head: "WAITING", right: true}, {head: "RUNNING", right: true}, {head: "OVER", right: true}, {head: "NOTE"}}}
	all := 0
	for i, o := range x.pool.Outcomes() {
		j := &x.config.Jobs[i]
		name, _ := j.Spec.Ad.Str(roost.AttrJobName)
		id, note := "-", ""
		count := max(j.Spec.Count, 1)
		waiting, over := o.Open-o.Running, count-o.Open
		switch {
		case o.Refused != nil:
			waiting, over, note = 0, 0, "refused: "+o.Refused.Error()
		case o.ID.IsZero():
			waiting, over, note = 0, 0, "to come"
		default:
			id = o.ID.String()
		}
		if word == "" && (o.Refused != nil || !o.ID.IsZero() && o.Open == 0) {
			continue
		}
		if word != "" && !strings.Contains(strings.ToLower(id+" "+name+" "+j.Owner), word) {
			continue
		}
		if all++; all > maxRows {
			continue
		}
		t.add(cell{text: id}, cell{text: printable(name)}, cell{text: printable(j.Owner)}, cell{text: audit.Clock(j.At)}, cell{text: strconv.Itoa(waiting)},
			cell{text: strconv.Itoa(o.Running)}, cell{text: strconv.Itoa(over)}, cell{text: printable(note)})
	}
	if all > 0 {
		t.drop("NOTE")
		t.print(x.out, x.c.out)
	}
	x.more(len(t.rows), all, "such job")
}

// machines lists machines.
func (x *paused) machines(word string) {
	t := &table{columns: []column{{head: "MACHINE"}, {head: "CPUS FREE", right: true}, {head: "MEMORY FREE", right: true}, {head: "GPUS FREE", right: true}, {head: "RUNNING", right: true}}}
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
			gpus = fmt.Sprintf("%d/%d", m.Left.GPUs, m.Total.GPUs)
		}
		t.add(cell{text: printable(m.Name)}, cell{text: fmt.Sprintf("%v/%v", m.Left.CPU, m.Total.CPU)}, cell{text: fmt.Sprintf("%v/%v", m.Left.Memory, m.Total.Memory)},
			cell{text: gpus}, cell{text: strconv.Itoa(m.Running)})
	}
	if all > 0 {
		t.drop("GPUS FREE")
		t.print(x.out, x.c.out)
	}
	x.more(len(t.rows), all, "such machine")
}
