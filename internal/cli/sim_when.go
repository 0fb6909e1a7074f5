package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/negotiator/picture"
)

func simWhen() (branch, []ucli.Flag) {
	return branch{
		name: "when", brief: "when a job starts", least: 1, most: 2, wants: "a job, or a job file, behind a checkpoint of a cell if it is not about the pool as it is now", do: when,
	}, append([]ucli.Flag{varFlag()}, resultFlags()...)
}

// jobID is what is taken for the id of a job, and not for a job file.
var jobID = regexp.MustCompile(`^[0-9]+(\[[^\]]*\])?(\.[^/]+)?$`)

// whenAnswer is the answer by one way to tell how long tasks run.
type whenAnswer struct {
	lengths live.Lengths
	*live.Answer
}

func when(c *call, args []string) error {
	file, of := "", args[len(args)-1]
	if len(args) == 2 {
		file = args[0]
	}
	p, err := c.picture(file)
	if err != nil {
		return err
	}
	ask := func(l live.Lengths) (*live.Answer, error) { return nil, nil }
	if jobID.MatchString(of) {
		id, err := fullID(p, of)
		if err != nil {
			return err
		}
		name, rest, _ := strings.Cut(id, "[") // of a task the answer is that of its job
		_, host, _ := strings.Cut(rest, "]")
		of, ask = name+host, func(l live.Lengths) (*live.Answer, error) { return live.When(p, id, l) }
	} else {
		asks, err := c.asked(p, of)
		if err != nil {
			return err
		}
		ask = func(l live.Lengths) (*live.Answer, error) { return live.WhenNew(p, asks, l) }
	}
	var answers []whenAnswer
	for _, lengths := range []live.Lengths{live.Asked, live.Predicted} {
		a, err := answeredTwice(func() (*live.Answer, error) { return ask(lengths) }, func(a *live.Answer) uint64 { return a.Digest })
		if err != nil {
			return err
		}
		answers = append(answers, whenAnswer{lengths, a})
	}
	if err := c.writeTable(whenTable(answers)); err != nil {
		return err
	}
	if err := c.writePicture(whenChart(of, answers)); err != nil {
		return err
	}
	if c.json() {
		return c.whenJSON(p, of, answers)
	}
	c.printWhen(p, of, answers)
	return nil
}

// fullID completes the id of a job with its host.
func fullID(p *picture.Checkpoint, id string) (string, error) {
	if strings.Contains(id, ".") {
		return id, nil
	}
	number, _, _ := strings.Cut(id, "[")
	var found []string
	for i := range p.Jobs {
		if strings.HasPrefix(p.Jobs[i].ID, number+".") {
			found = append(found, strings.TrimPrefix(p.Jobs[i].ID, number))
		}
	}
	switch len(found) {
	case 0:
		return "", problem(roost.NotFound, "%s: no job of that number is in the queue: it has ended, or never was", id)
	case 1:
		return id + found[0], nil
	}
	return "", advise(problem(roost.Invalid, "%s: there are %d jobs of that number", id, len(found)), "add the host: "+id+found[0])
}

var lengthNames = [...]string{"asked", "predicted"}

func (c *call) printWhen(p *picture.Checkpoint, of string, answers []whenAnswer) {
	a := answers[0]
	tasks := waiting(a.Tasks)
	if !jobID.MatchString(of) {
		tasks = plural(a.Tasks, "task") + ", if it is submitted then"
	}
	fmt.Fprintf(c.stdout, "%s: %s\n%s\n\n", c.out.paint(bold, printable(of)), tasks, c.asOf(p))
	if a.Ahead > 0 {
		fmt.Fprintf(c.stdout, "  before it      %s that ask for the same\n", plural(a.Ahead, "task"))
	}
	for i, a := range answers {
		if i > 0 && a.First.Equal(answers[0].First) && a.Last.Equal(answers[0].Last) {
			continue
		}
		how := [...]string{"by walltimes ", "by past runs "}[i]
		fmt.Fprintf(c.stdout, "  %s  %s\n", how, c.startsAt(p, a.First))
		if a.Tasks > 1 {
			fmt.Fprintf(c.stdout, "  its last task  %s\n", c.startsAt(p, a.Last))
		}
	}
	if last := answers[len(answers)-1]; last.Stopped != "" {
		fmt.Fprintf(c.stdout, "\n%s\n", c.paragraph("  ", "  ", last.Stopped))
	} else if last.Explanation != nil {
		fmt.Fprintf(c.stdout, "\n%s\n", c.paragraph("  ", "  ", last.Explanation.Summary))
		c.printReasons(last.Explanation)
	}
	c.list("It is assumed that", assumes(p, a.Endless, "tasks run for as long as their walltimes let them, or by past runs as long as those like them did"))
	fmt.Fprintf(c.stdout, "\n%d events; played twice, digest %016x both times\n", answers[0].Events, answers[0].Digest)
}

func (c *call) whenJSON(p *picture.Checkpoint, of string, answers []whenAnswer) error {
	d := document{"job": of, "at": p.Now.Unix(), "tasks": answers[0].Tasks, "ahead": answers[0].Ahead, "endless": answers[0].Endless}
	for _, a := range answers {
		d[lengthNames[a.lengths]] = document{
			"first_seconds": secondsTo(p, a.First), "last_seconds": secondsTo(p, a.Last), "started": a.Started, "stopped": a.Stopped, "reasons": reasonsJSON(a.Explanation),
			"events": a.Events, "digest": fmt.Sprintf("%016x", a.Digest),
		}
	}
	return printJSON(c.stdout, d)
}

// whenTable is a row for each instant at which tasks of the job start, by each way to tell how long tasks run.
func whenTable(answers []whenAnswer) (head []string, rows [][]string) {
	for _, a := range answers {
		for _, r := range a.Course {
			rows = append(rows, []string{lengthNames[a.lengths], strconv.FormatInt(r.At, 10), strconv.Itoa(r.Tasks), strconv.Itoa(a.Tasks)})
		}
	}
	return []string{"by", "at_seconds", "started_tasks", "tasks"}, rows
}

// whenChart is how many tasks of the job have started, from the checkpoint on.
func whenChart(of string, answers []whenAnswer) plot.Chart {
	end := int64(60)
	for _, a := range answers {
		if n := len(a.Course); n > 0 {
			end = max(end, a.Course[n-1].At+a.Course[n-1].At/20)
		}
	}
	axis, unit := timeSince(end)
	chart := plot.Chart{Title: "When " + of + " starts", X: axis, Y: plot.Axis{Label: "tasks that have started", Max: float64(answers[0].Tasks)}}
	for _, a := range answers {
		s := plot.Series{Name: [...]string{"by walltimes", "by past runs"}[a.lengths], Kind: plot.Step}
		for _, r := range a.Course {
			s.Points = append(s.Points, plot.Point{X: float64(r.At) / unit, Y: float64(r.Tasks)})
		}
		if n := len(s.Points); n > 0 {
			s.Points = append(s.Points, plot.Point{X: float64(end) / unit, Y: s.Points[n-1].Y})
		}
		chart.Series = append(chart.Series, s)
	}
	return chart
}
