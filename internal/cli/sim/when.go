package sim

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/negotiator/cellstate"
)

func whenSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
		Name: "when", Summary: "when a job starts", MinOperands: 1, MaxOperands: 2,
		OperandNames: "a job, or a job file, behind a checkpoint of a cell if it is not about the pool as it is now",
		Run:          runWhen,
	}, append([]ucli.Flag{varFlag()}, resultFlags()...)
}

// jobID is what is taken for the id of a job, and not for a job file.
var jobID = regexp.MustCompile(`^[0-9]+(\[[^\]]*\])?(\.[^/]+)?$`)

// whenAnswer is the answer by one way to tell how long tasks run.
type whenAnswer struct {
	lengths whatif.RuntimeModel
	*whatif.StartAnswer
}

func runWhen(c *frame.Invocation, args []string) error {
	file, of := "", args[len(args)-1]
	if len(args) == 2 {
		file = args[0]
	}
	p, err := cell.ReadCellCheckpoint(c, file)
	if err != nil {
		return err
	}
	ask := func(l whatif.RuntimeModel) (*whatif.StartAnswer, error) { return nil, nil }
	if jobID.MatchString(of) {
		id, err := withHost(p, of)
		if err != nil {
			return err
		}
		name, rest, _ := strings.Cut(id, "[") // of a task the answer is that of its job
		_, host, _ := strings.Cut(rest, "]")
		of, ask = name+host, func(l whatif.RuntimeModel) (*whatif.StartAnswer, error) {
			return whatif.WhenStarts(p, id, l)
		}
	} else {
		asks, err := requestedTasks(c, p, of)
		if err != nil {
			return err
		}
		ask = func(l whatif.RuntimeModel) (*whatif.StartAnswer, error) { return whatif.WhenSubmitted(p, asks, l) }
	}
	var answers []whenAnswer
	for _, lengths := range []whatif.RuntimeModel{whatif.ByWalltime, whatif.ByPrediction} {
		a, err := answerTwice(func() (*whatif.StartAnswer, error) {
			return ask(lengths)
		}, func(a *whatif.StartAnswer) uint64 { return a.Digest })
		if err != nil {
			return err
		}
		answers = append(answers, whenAnswer{lengths, a})
	}
	head, rows := whenTable(answers)
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, whenChart(of, answers)); err != nil {
		return err
	}
	if c.WantsJSON() {
		return whenJSON(c, p, of, answers)
	}
	printWhen(c, p, of, answers)
	return nil
}

// WhenSubmitted says when jobs would start if they were submitted to the pool as it is
// now. Tasks are assumed to use all of their walltimes.
func WhenSubmitted(c *frame.Invocation, jobs []submit.Job) (*whatif.StartAnswer, error) {
	p, err := cell.ReadCellCheckpoint(c, "")
	if err != nil {
		return nil, err
	}
	asks, err := requestsOfJobs(p, jobs)
	if err != nil {
		return nil, err
	}
	return whatif.WhenSubmitted(p, asks, whatif.ByWalltime)
}

// withHost completes the id of a job with its host.
func withHost(p *cellstate.CellCheckpoint, id string) (string, error) {
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
		return "", frame.KindErrorf(roost.NotFound,
			"%s: no job of that number is in the queue: it has ended, or never was",
			id)
	case 1:
		return id + found[0], nil
	}
	return "", frame.WithHint(frame.KindErrorf(roost.Invalid, "%s: there are %d jobs of that number", id, len(found)),
		"add the host: "+id+found[0])
}

var lengthNames = [...]string{"asked", "predicted"}

func printWhen(c *frame.Invocation, p *cellstate.CellCheckpoint, of string, answers []whenAnswer) {
	a := answers[0]
	tasks := waitingText(a.Tasks)
	if !jobID.MatchString(of) {
		tasks = document.Plural(a.Tasks, "task") + ", if it is submitted then"
	}
	fmt.Fprintf(c.Stdout, "%s: %s\n%s\n\n", c.OutScreen.ColourText(frame.Bold, document.PrintableText(of)), tasks,
		printAsOf(c, p))
	if a.Ahead > 0 {
		fmt.Fprintf(c.Stdout, "  before it      %s that ask for the same\n", document.Plural(a.Ahead, "task"))
	}
	for i, a := range answers {
		if i > 0 && a.First.Equal(answers[0].First) && a.Last.Equal(answers[0].Last) {
			continue
		}
		how := [...]string{"by walltimes ", "by past runs "}[i]
		fmt.Fprintf(c.Stdout, "  %s  %s\n", how, startTimeText(c, p, a.First))
		if a.Tasks > 1 {
			fmt.Fprintf(c.Stdout, "  its last task  %s\n", startTimeText(c, p, a.Last))
		}
	}
	if last := answers[len(answers)-1]; last.StoppedReason != "" {
		fmt.Fprintf(c.Stdout, "\n%s\n", c.PrintParagraph("  ", "  ", last.StoppedReason))
	} else if last.Explanation != nil {
		fmt.Fprintf(c.Stdout, "\n%s\n", c.PrintParagraph("  ", "  ", last.Explanation.Summary))
		printReasons(c, last.Explanation)
	}
	c.PrintList("It is assumed that", assumptions(p, a.EndUnknown,
		"tasks run for as long as their walltimes let them, or by past runs as long as those like them did"))
	fmt.Fprintf(c.Stdout, "\n%d events; played twice, digest %016x both times\n", answers[0].Events, answers[0].Digest)
}

func whenJSON(c *frame.Invocation, p *cellstate.CellCheckpoint, of string, answers []whenAnswer) error {
	d := frame.JSONDocument{"job": of, "at": p.Now.Unix(), "tasks": answers[0].Tasks, "ahead": answers[0].Ahead,
		"endless": answers[0].EndUnknown}
	for _, a := range answers {
		d[lengthNames[a.lengths]] = frame.JSONDocument{
			"first_seconds": secondsUntil(p, a.First), "last_seconds": secondsUntil(p, a.Last), "started": a.Started,
			"stopped": a.StoppedReason, "reasons": reasonsJSON(a.Explanation),
			"events": a.Events, "digest": fmt.Sprintf("%016x", a.Digest),
		}
	}
	return frame.PrintJSON(c.Stdout, d)
}

// whenTable has a row for each instant at which tasks start, for each way to estimate run
// times.
func whenTable(answers []whenAnswer) (head []string, rows [][]string) {
	for _, a := range answers {
		for _, r := range a.StartCounts {
			rows = append(rows, []string{lengthNames[a.lengths], strconv.FormatInt(r.At, 10), strconv.Itoa(r.Tasks),
				strconv.Itoa(a.Tasks)})
		}
	}
	return []string{"by", "at_seconds", "started_tasks", "tasks"}, rows
}

// whenChart is how many tasks of the job have started, from the checkpoint on.
func whenChart(of string, answers []whenAnswer) plot.Chart {
	end := int64(60)
	for _, a := range answers {
		if n := len(a.StartCounts); n > 0 {
			end = max(end, a.StartCounts[n-1].At+a.StartCounts[n-1].At/20)
		}
	}
	axis, unit := timeAxis(end)
	chart := plot.Chart{Title: "When " + of + " starts", X: axis,
		Y: plot.ChartAxis{Label: "tasks that have started", Max: float64(answers[0].Tasks)}}
	for _, a := range answers {
		s := plot.ChartSeries{Name: [...]string{"by walltimes", "by past runs"}[a.lengths], Kind: plot.Step}
		for _, r := range a.StartCounts {
			s.Points = append(s.Points, plot.DataPoint{X: float64(r.At) / unit, Y: float64(r.Tasks)})
		}
		if n := len(s.Points); n > 0 {
			s.Points = append(s.Points, plot.DataPoint{X: float64(end) / unit, Y: s.Points[n-1].Y})
		}
		chart.Series = append(chart.Series, s)
	}
	return chart
}
