package sim

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobfile"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/schedd/queue"
)

// Questions about a cell of which there is a checkpoint, or about the one that is there.

func varFlag() ucli.Flag {
	return &ucli.StringSliceFlag{Name: "var",
		Usage: "fit, when: set a variable of the job file, as `NAME=VALUE`; may be repeated"}
}

// answerTwice answers a question twice. If that gave two answers it would be a defect,
// and no answer.
func answerTwice[T any](ask func() (T, error), digest func(T) uint64) (answer T, err error) {
	if answer, err = ask(); err != nil {
		return answer, simRefusal(err)
	}
	again, err := ask()
	if err != nil {
		return answer, simRefusal(err)
	}
	if a, b := digest(answer), digest(again); a != b {
		return answer, frame.KindErrorf(roost.Internal,
			"asked again, it came out differently: %016x and %016x; please tell us, with the checkpoint", a, b)
	}
	return answer, nil
}

// simRefusal is why a question has no answer.
func simRefusal(err error) error {
	var kind roost.ErrorKind
	if !errors.As(err, &kind) {
		return err
	}
	return frame.KindErrorf(kind, "%s", document.PrintableText(strings.Replace(err.Error(), kind.Error()+": ", "", 1)))
}

// printAsOf says which cell a question was about.
func printAsOf(c *frame.Invocation, p *cellstate.CellCheckpoint) string {
	return fmt.Sprintf("%s and %s, as of %s", document.Plural(len(p.Machines), "machine"), waitingText(waitReasons(p)),
		p.Now.In(c.Now().Location()).Format("2006-01-02 15:04:05"))
}

// waitingText is so many tasks that wait.
func waitingText(n int) string {
	if n == 1 {
		return "1 task that waits"
	}
	return fmt.Sprintf("%d tasks that wait", n)
}

func waitReasons(p *cellstate.CellCheckpoint) (n int) {
	for _, a := range p.Requests {
		n += a.OwnWanted
	}
	return n
}

// requestedTasks are the requests of a job file, or of its text, as in "cpus = 4; memory
// = \"8GiB\"".
func requestedTasks(c *frame.Invocation, p *cellstate.CellCheckpoint, text string) ([]*cellstate.PendingRequest,
	error) {
	jobs, err := requestedJobs(c, text)
	if err != nil {
		return nil, err
	}
	return requestsOfJobs(p, jobs)
}

// requestsOfJobs are the requests of jobs.
func requestsOfJobs(p *cellstate.CellCheckpoint, jobs []submit.Job) ([]*cellstate.PendingRequest, error) {
	var specs []queue.SubmitSpec
	for _, j := range jobs {
		spec := queue.SubmitSpec{Ad: j.Ad, Count: j.Count}
		for _, col := range j.Columns {
			spec.Columns = append(spec.Columns, queue.TaskColumn{Name: col.Name, Values: col.Values})
		}
		specs = append(specs, spec)
	}
	asks, err := whatif.RequestsOfJobs(p.Now,
		queue.CallerIdentity{User: frame.LoginName(), UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, specs)
	if err != nil {
		return nil, simRefusal(err)
	}
	return asks, nil
}

func requestedJobs(c *frame.Invocation, text string) ([]submit.Job, error) {
	if text == "-" || !strings.Contains(text, "=") {
		return jobfile.ParseJobFile(c, text)
	}
	if _, err := os.Stat(c.AbsolutePath(text)); err == nil {
		return jobfile.ParseJobFile(c, text)
	}
	source := "job \"asked\" {\n  command = [\"/bin/true\"]\n" + strings.ReplaceAll(text, ";", "\n") + "\n}\n"
	opts, err := c.SubmitOptions()
	if err != nil {
		return nil, err
	}
	opts.Filename, opts.Files = "--request", nil
	return jobfile.ParsedJobs(c, []byte(source), opts)
}

// startTimeText writes when something starts, for people.
func startTimeText(c *frame.Invocation, p *cellstate.CellCheckpoint, t time.Time) string {
	left := t.Sub(p.Now)
	switch {
	case t.IsZero():
		return "never, as far as can be seen"
	case left < time.Second:
		return "at once"
	}
	return fmt.Sprintf("%s, in %s", c.StartHour(t), secondsText(int64(left/time.Second)))
}

// secondsUntil is how long after the checkpoint something is; nil for never.
func secondsUntil(p *cellstate.CellCheckpoint, t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return int64(t.Sub(time.Unix(p.Now.Unix(), 0)) / time.Second)
}

func reasonsJSON(x *match.WaitExplanation) []frame.JSONDocument {
	all := []frame.JSONDocument{}
	if x != nil {
		for _, r := range x.Reasons {
			all = append(all, frame.JSONDocument{"kind": r.Kind.String(), "text": r.Text, "machines": r.Machines})
		}
	}
	return all
}

// printReasons says why no more of a job starts.
func printReasons(c *frame.Invocation, x *match.WaitExplanation) {
	if x == nil {
		return
	}
	fmt.Fprintf(c.Stdout, "\n  Of %s:\n", document.Plural(x.Machines, "machine"))
	for _, r := range x.Reasons {
		fmt.Fprintln(c.Stdout, c.PrintParagraph(fmt.Sprintf("  %6d  ", r.Machines), "          ", r.Text))
	}
	c.PrintList("What would help:", x.Advice)
}

// assumptions are what an answer takes to be so.
func assumptions(p *cellstate.CellCheckpoint, endless int, how string) []string {
	all := []string{"no job comes, goes or is altered meanwhile, and no machine does", how}
	if endless > 0 {
		all = append(all, fmt.Sprintf("%s of those that run, or start meanwhile, say no walltime, and nothing "+
			"like them has run before: they are taken to run for ever", document.Plural(endless, "task")))
	}
	for _, node := range p.SilentSchedds {
		all = append(all, "the schedd of "+node+" did not say which jobs it has")
	}
	return all
}
