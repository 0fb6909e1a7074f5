package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/wire"
)

// SubmitCommand returns roost submit: submit the jobs of a job file.
func SubmitCommand() *frame.Command {
	return &frame.Command{
		Name: "submit", Group: frame.GroupRun, Summary: "submit the jobs of a job file", Synopsis: "FILE",
		MinOperands: 1,
		MaxOperands: 1, OperandName: "a job file", Run: submitFile,
		Description: "Reads a job file in HCL, see roost-job(5), and puts its jobs into the queue: all of them, or " +
			"none if anything is wrong. Prints the id of each job on a line of its own; once an id is printed, the " +
			"job survives any crash.",
		Examples: []frame.Example{
			{Line: "roost submit sweep.hcl", Description: "submit a job file"},
			{Line: "roost submit --var seed=7 --wait sweep.hcl",
				Description: "set a variable of it, and wait until all is done"},
		},
		Flags: []ucli.Flag{
			&ucli.StringSliceFlag{Name: "var",
				Usage: "set a variable of the job file, as `NAME=VALUE`; may be repeated"},
			&ucli.StringFlag{Name: "key",
				Usage: "the submit `KEY`: submitting again with the same one gives the same jobs"},
			&ucli.BoolFlag{Name: "hold", Usage: "hold the jobs until they are released"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the ids and nothing else"},
			&ucli.BoolFlag{Name: "wait", Aliases: []string{"w"},
				Usage: "wait until the jobs have ended; the exit status is as of roost wait"},
			frame.JSONFlag(),
		},
	}
}

func submitFile(c *frame.Invocation) error {
	jobs, err := ParseJobFile(c, c.Args[0])
	if err != nil {
		return err
	}
	if c.Flag("hold") {
		for _, j := range jobs {
			j.Ad.SetBool(roost.AttrHoldOnSubmit, true)
		}
	}
	reply, err := SubmitJobs(c, jobs, c.StringFlag("key"))
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		err = printSubmittedJSON(c, jobs, reply)
	} else {
		printSubmitted(c, jobs, reply)
	}
	if err != nil || !c.Flag("wait") {
		return err
	}
	return awaitJobs(c, reply.GetIds(), 0, c.Flag("quiet") || c.WantsJSON())
}

// ParseJobFile reads a job file, "-" for standard input.
func ParseJobFile(c *frame.Invocation, file string) ([]submit.Job, error) {
	src, err := readInput(c, file)
	if err != nil {
		return nil, err
	}
	opts, err := c.SubmitOptions()
	if err != nil {
		return nil, err
	}
	opts.Filename, opts.Vars = file, map[string]string{}
	if file == "-" {
		opts.Filename = "standard input"
	}
	for _, text := range c.StringsFlag("var") {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, frame.WithHint(frame.UsageErrorf("--var %s: a variable is set as NAME=VALUE", text),
				"as in: roost submit --var seed=7 "+file)
		}
		opts.Vars[name] = value
	}
	return ParsedJobs(c, src, opts)
}

// ParsedJobs are the jobs of the text of a job file. Mistakes are printed with their
// place. What is wrong with it is printed with its place.
func ParsedJobs(c *frame.Invocation, src []byte, opts submit.ParseOptions) ([]submit.Job, error) {
	jobs, diags := submit.ParseFile(src, opts)
	if diags.HasErrors() {
		width := c.ErrScreen.Width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.Stderr, submit.Format(diags, src, width, c.ErrScreen.Colour))
		return nil, frame.ExitError(submit.ExitKind(diags).ExitCode())
	}
	if len(jobs) == 0 {
		return nil, frame.KindErrorf(roost.Invalid, "%s: there is no job in it", opts.Filename)
	}
	return jobs, nil
}

// readInput reads a whole file of the user's, or standard input.
func readInput(c *frame.Invocation, file string) ([]byte, error) {
	var src []byte
	var err error
	if file == "-" {
		src, err = frame.ReadLimited(c.Stdin, "standard input", roost.MaxJobFileBytes)
	} else {
		src, err = frame.UserFiles{}.Read(c.AbsolutePath(file), roost.MaxJobFileBytes)
	}
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, frame.KindErrorf(roost.NoInput, "%s: %v", file, path.Err)
	case err != nil:
		return nil, frame.KindErrorf(roost.Invalid, "%v", err)
	}
	return src, nil
}

// SubmitJobs submits jobs to the schedd. Its answer may be lost; then the same key asks
// again, and the schedd makes no second set of jobs. Its answer may be lost; then the
// same key asks again, and the schedd makes no second set of jobs of it.
func SubmitJobs(c *frame.Invocation, jobs []submit.Job, key string) (reply *wire.SubmitReply, err error) {
	if key == "" {
		key = rand.Text()
	}
	req := &wire.SubmitRequest{Key: key}
	for _, j := range jobs {
		if err := uploadScript(c, &j); err != nil {
			return nil, err
		}
		spec := &wire.JobSpec{Ad: j.Ad.String(), Count: uint32(j.Count)}
		for _, col := range j.Columns {
			spec.Columns = append(spec.Columns, &wire.Column{Name: col.Name, Values: col.Values})
		}
		req.Jobs = append(req.Jobs, spec)
	}
	s, err := c.ConnectSchedd()
	if err != nil {
		return nil, err
	}
	err = c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		reply, err = wire.SendSubmission(ctx, s, req)
		return frame.DecodeError(err)
	})
	return reply, err
}

func printSubmitted(c *frame.Invocation, jobs []submit.Job, reply *wire.SubmitReply) {
	for _, id := range reply.GetIds() {
		fmt.Fprintln(c.Stdout, id)
	}
	if c.Flag("quiet") || !c.ErrScreen.Terminal {
		return
	}
	tasks := 0
	for _, j := range jobs {
		tasks += j.Count
	}
	word := "submitted"
	if reply.GetRepeatedKey() {
		word = "submitted before:"
	}
	hint := "; follow it with: roost wait last"
	if c.Flag("wait") {
		hint = ""
	}
	fmt.Fprintln(c.Stderr, c.ErrScreen.ColourText(frame.Dim,
		fmt.Sprintf("%s %s with %s%s", word, document.Plural(len(reply.GetIds()), "job"),
			document.Plural(tasks, "task"),
			hint)))
}

func printSubmittedJSON(c *frame.Invocation, jobs []submit.Job, reply *wire.SubmitReply) error {
	type job struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Tasks int    `json:"tasks"`
	}
	list := make([]job, 0, len(jobs))
	for i, id := range reply.GetIds() {
		j := job{ID: id}
		if i < len(jobs) {
			j.Name, j.Tasks = jobs[i].Name, jobs[i].Count
		}
		list = append(list, j)
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{"jobs": list, "repeated": reply.GetRepeatedKey()})
}
