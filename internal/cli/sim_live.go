package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/schedd/queue"
)

// Questions about a cell of which there is a checkpoint, or about the one that is there.

func varFlag() ucli.Flag {
	return &ucli.StringSliceFlag{Name: "var", Usage: "fit, when: set a variable of the job file, as `NAME=VALUE`; may be repeated"}
}

// answeredTwice answers a question twice. If that gave two answers it would be a defect, and no answer.
func answeredTwice[T any](ask func() (T, error), digest func(T) uint64) (answer T, err error) {
	if answer, err = ask(); err != nil {
		return answer, refusedBySim(err)
	}
	again, err := ask()
	if err != nil {
		return answer, refusedBySim(err)
	}
	if a, b := digest(answer), digest(again); a != b {
		return answer, problem(roost.Internal, "asked again, it came out differently: %016x and %016x; please tell us, with the checkpoint", a, b)
	}
	return answer, nil
}

// refusedBySim is why a question has no answer.
func refusedBySim(err error) error {
	var kind roost.Kind
	if !errors.As(err, &kind) {
		return err
	}
	return problem(kind, "%s", printable(strings.Replace(err.Error(), kind.Error()+": ", "", 1)))
}

// asOf says which cell a question was about.
func (c *call) asOf(p *picture.Checkpoint) string {
	return fmt.Sprintf("%s and %s, as of %s", plural(len(p.Machines), "machine"), waiting(waits(p)), p.Now.In(c.now().Location()).Format("2006-01-02 15:04:05"))
}

// waiting is so many tasks that wait.
func waiting(n int) string {
	if n == 1 {
		return "1 task that waits"
	}
	return fmt.Sprintf("%d tasks that wait", n)
}

func waits(p *picture.Checkpoint) (n int) {
	for _, a := range p.Asks {
		n += a.Own
	}
	return n
}

// asked are the requests of a job: of a job file, or of what stands in one, as "cpus = 4; memory = \"8GiB\"".
func (c *call) asked(p *picture.Checkpoint, text string) ([]*picture.Ask, error) {
	jobs, err := c.askedJobs(text)
	if err != nil {
		return nil, err
	}
	var specs []queue.Spec
	for _, j := range jobs {
		spec := queue.Spec{Ad: j.Ad, Count: j.Count}
		for _, col := range j.Columns {
			spec.Columns = append(spec.Columns, queue.Column{Name: col.Name, Values: col.Values})
		}
		specs = append(specs, spec)
	}
	asks, err := live.Asks(p.Now, queue.Submitter{User: loginName(), UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, specs)
	if err != nil {
		return nil, refusedBySim(err)
	}
	return asks, nil
}

func (c *call) askedJobs(text string) ([]submit.Job, error) {
	if text == "-" || !strings.Contains(text, "=") {
		return c.parseJobFile(text)
	}
	if _, err := os.Stat(c.path(text)); err == nil {
		return c.parseJobFile(text)
	}
	source := "job \"asked\" {\n  command = [\"/bin/true\"]\n" + strings.ReplaceAll(text, ";", "\n") + "\n}\n"
	opts, err := c.submitOptions()
	if err != nil {
		return nil, err
	}
	opts.Filename, opts.Files = "--request", nil
	return c.parsedJobs([]byte(source), opts)
}

// startsAt writes when something starts, for people.
func (c *call) startsAt(p *picture.Checkpoint, t time.Time) string {
	left := t.Sub(p.Now)
	switch {
	case t.IsZero():
		return "never, as far as can be seen"
	case left < time.Second:
		return "at once"
	}
	return fmt.Sprintf("%s, in %s", c.hour(t), spoken(int64(left/time.Second)))
}

// secondsTo is how long after the checkpoint something is; nil for never.
func secondsTo(p *picture.Checkpoint, t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return int64(t.Sub(time.Unix(p.Now.Unix(), 0)) / time.Second)
}

func reasonsJSON(x *match.Explanation) []document {
	all := []document{}
	if x != nil {
		for _, r := range x.Reasons {
			all = append(all, document{"kind": r.Kind.String(), "text": r.Text, "machines": r.Machines})
		}
	}
	return all
}

// printReasons says why no more of a job starts.
func (c *call) printReasons(x *match.Explanation) {
	if x == nil {
		return
	}
	fmt.Fprintf(c.stdout, "\n  Of %s:\n", plural(x.Machines, "machine"))
	for _, r := range x.Reasons {
		fmt.Fprintln(c.stdout, c.paragraph(fmt.Sprintf("  %6d  ", r.Machines), "          ", r.Text))
	}
	c.list("What would help:", x.Advice)
}

// assumes are what an answer takes to be so.
func assumes(p *picture.Checkpoint, endless int, how string) []string {
	all := []string{"no job comes, goes or is altered meanwhile, and no machine does", how}
	if endless > 0 {
		all = append(all, fmt.Sprintf("%s of those that run, or start meanwhile, say no walltime, and nothing like them has run before: they are taken to run for ever", plural(endless, "task")))
	}
	for _, node := range p.Silent {
		all = append(all, "the schedd of "+node+" did not say which jobs it has")
	}
	return all
}
