package cli

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
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/wire"
)

func submitCommand() *command {
	return &command{
		name: "submit", group: groupRun, summary: "submit the jobs of a job file", synopsis: "FILE", minOperands: 1,
		maxOperands: 1, operandName: "a job file", run: submitFile,
		description: "Reads a job file in HCL, see roost-job(5), and puts its jobs into the queue: all of them, or " +
			"none if anything is wrong. Prints the id of each job on a line of its own; once an id is printed, the " +
			"job survives any crash.",
		examples: []commandExample{
			{"roost submit sweep.hcl", "submit a job file"},
			{"roost submit --var seed=7 --wait sweep.hcl", "set a variable of it, and wait until all is done"},
		},
		flags: []ucli.Flag{
			&ucli.StringSliceFlag{Name: "var",
				Usage: "set a variable of the job file, as `NAME=VALUE`; may be repeated"},
			&ucli.StringFlag{Name: "key",
				Usage: "the submit `KEY`: submitting again with the same one gives the same jobs"},
			&ucli.BoolFlag{Name: "hold", Usage: "hold the jobs until they are released"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the ids and nothing else"},
			&ucli.BoolFlag{Name: "wait", Aliases: []string{"w"},
				Usage: "wait until the jobs have ended; the exit status is as of roost wait"},
			jsonFlag(),
		},
	}
}

func submitFile(c *invocation) error {
	jobs, err := c.parseJobFile(c.args[0])
	if err != nil {
		return err
	}
	if c.flag("hold") {
		for _, j := range jobs {
			j.Ad.SetBool(roost.AttrHoldOnSubmit, true)
		}
	}
	reply, err := c.submitJobs(jobs, c.stringFlag("key"))
	if err != nil {
		return err
	}
	if c.wantsJSON() {
		err = c.printSubmittedJSON(jobs, reply)
	} else {
		c.printSubmitted(jobs, reply)
	}
	if err != nil || !c.flag("wait") {
		return err
	}
	return c.awaitJobs(reply.GetIds(), 0, c.flag("quiet") || c.wantsJSON())
}

// parseJobFile reads a job file, "-" for standard input.
func (c *invocation) parseJobFile(file string) ([]submit.Job, error) {
	src, err := c.readInput(file)
	if err != nil {
		return nil, err
	}
	opts, err := c.submitOptions()
	if err != nil {
		return nil, err
	}
	opts.Filename, opts.Vars = file, map[string]string{}
	if file == "-" {
		opts.Filename = "standard input"
	}
	for _, text := range c.stringsFlag("var") {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, withHint(usageErrorf("--var %s: a variable is set as NAME=VALUE", text),
				"as in: roost submit --var seed=7 "+file)
		}
		opts.Vars[name] = value
	}
	return c.parsedJobs(src, opts)
}

// parsedJobs are the jobs of the text of a job file. What is wrong with it is printed
// with its place.
func (c *invocation) parsedJobs(src []byte, opts submit.ParseOptions) ([]submit.Job, error) {
	jobs, diags := submit.ParseFile(src, opts)
	if diags.HasErrors() {
		width := c.err.width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.stderr, submit.Format(diags, src, width, c.err.colour))
		return nil, exitError(submit.ExitKind(diags).ExitCode())
	}
	if len(jobs) == 0 {
		return nil, kindErrorf(roost.Invalid, "%s: there is no job in it", opts.Filename)
	}
	return jobs, nil
}

// readInput reads a whole file of the user's, or standard input.
func (c *invocation) readInput(file string) ([]byte, error) {
	var src []byte
	var err error
	if file == "-" {
		src, err = readLimited(c.stdin, "standard input", roost.MaxJobFileBytes)
	} else {
		src, err = userFiles{}.Read(c.absolutePath(file), roost.MaxJobFileBytes)
	}
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return nil, kindErrorf(roost.NoInput, "%s: %v", file, path.Err)
	case err != nil:
		return nil, kindErrorf(roost.Invalid, "%v", err)
	}
	return src, nil
}

// submitJobs hands jobs over to the schedd. Its answer may be lost; then the same key
// asks again, and the schedd makes no second set of jobs of it.
func (c *invocation) submitJobs(jobs []submit.Job, key string) (reply *wire.SubmitReply, err error) {
	if key == "" {
		key = rand.Text()
	}
	req := &wire.SubmitRequest{Key: key}
	for _, j := range jobs {
		if err := c.uploadScript(&j); err != nil {
			return nil, err
		}
		spec := &wire.JobSpec{Ad: j.Ad.String(), Count: uint32(j.Count)}
		for _, col := range j.Columns {
			spec.Columns = append(spec.Columns, &wire.Column{Name: col.Name, Values: col.Values})
		}
		req.Jobs = append(req.Jobs, spec)
	}
	s, err := c.connectSchedd()
	if err != nil {
		return nil, err
	}
	err = c.retry(submitTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		reply, err = wire.SendSubmission(ctx, s, req)
		return decodeError(err)
	})
	return reply, err
}

func (c *invocation) printSubmitted(jobs []submit.Job, reply *wire.SubmitReply) {
	for _, id := range reply.GetIds() {
		fmt.Fprintln(c.stdout, id)
	}
	if c.flag("quiet") || !c.err.terminal {
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
	if c.flag("wait") {
		hint = ""
	}
	fmt.Fprintln(c.stderr, c.err.colourText(dim,
		fmt.Sprintf("%s %s with %s%s", word, plural(len(reply.GetIds()), "job"), plural(tasks, "task"), hint)))
}

func (c *invocation) printSubmittedJSON(jobs []submit.Job, reply *wire.SubmitReply) error {
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
	return printJSON(c.stdout, jsonDocument{"jobs": list, "repeated": reply.GetRepeatedKey()})
}
