package jobfile

import (
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/progressbar"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
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
			&ucli.BoolFlag{Name: "cell",
				Usage: "submit to the queue of the cell, which outlives this machine, see roost-cell-queue(8)"},
			&ucli.BoolFlag{Name: "local",
				Usage: "submit to the queue of this machine, also services, and where the node file says otherwise"},
			&ucli.BoolFlag{Name: "hold", Usage: "hold the jobs until they are released"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the ids and nothing else"},
			&ucli.BoolFlag{Name: "wait", Aliases: []string{"w"},
				Usage: "wait until the jobs have ended; the exit status is as of roost wait"},
			frame.JSONFlag(),
		},
	}
}

func submitFile(c *frame.Invocation) error {
	queue, err := namedQueue(c)
	if err != nil {
		return err
	}
	list, err := ParseJobFile(c, c.Args[0])
	if err != nil {
		return err
	}
	if c.Flag("hold") {
		for _, j := range list {
			j.Ad.SetBool(roost.AttrHoldOnSubmit, true)
		}
	}
	var meter *progressbar.WorkMeter
	if !c.Flag("quiet") {
		meter = progressbar.NewWorkMeter(c, "submit", jobs.UploadSize(list), progressbar.Bytes)
	}
	reply, err := jobs.SubmitTo(c, queue, list, c.StringFlag("key"), func(bytes int) { meter.Add(int64(bytes)) })
	meter.End(err == nil)
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		err = printSubmittedJSON(c, list, reply)
	} else {
		printSubmitted(c, list, reply)
	}
	if err != nil || !c.Flag("wait") {
		return err
	}
	return jobs.AwaitJobs(c, progressbar.New, reply.GetIds(), 0, c.Flag("quiet") || c.WantsJSON())
}

// namedQueue is the queue that the command line names.
func namedQueue(c *frame.Invocation) (string, error) {
	cell, local := c.Flag("cell"), c.Flag("local")
	switch {
	case cell && local:
		return "", frame.UsageErrorf("--cell and --local name two queues: say one of them, or none for the queue " +
			"that the job file or the node file says")
	case cell:
		return jobs.CellQueue, nil
	case local:
		return jobs.HostQueue, nil
	}
	return jobs.DefaultQueue, nil
}

// ParseJobFile reads a job file, "-" for standard input.
func ParseJobFile(c *frame.Invocation, file string) ([]submit.Job, error) {
	src, err := jobs.ReadInput(c, file)
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
	list, diags := submit.ParseFile(src, opts)
	if len(diags) > 0 { // mistakes, or warnings
		width := c.ErrScreen.Width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.Stderr, submit.Format(diags, src, width, c.ErrScreen.Colour))
	}
	if diags.HasErrors() {
		return nil, frame.ExitError(submit.ExitKind(diags).ExitCode())
	}
	if len(list) == 0 {
		return nil, frame.KindErrorf(roost.Invalid, "%s: there is no job in it", opts.Filename)
	}
	return list, nil
}

func printSubmitted(c *frame.Invocation, list []submit.Job, reply *scheddapi.SubmitReply) {
	for _, id := range reply.GetIds() {
		fmt.Fprintln(c.Stdout, id)
	}
	if c.Flag("quiet") || !c.ErrScreen.Terminal {
		return
	}
	tasks := 0
	for _, j := range list {
		tasks += j.Count
	}
	word := "submitted"
	if reply.GetRepeatedKey() {
		word = "submitted before:"
	}
	where, hint := "", "; follow it with: roost wait last"
	if reply.GetCellQueue() {
		where, hint = " in the queue of the cell", "; follow it with: roost wait "+strings.Join(reply.GetIds(), " ")
	}
	if c.Flag("wait") {
		hint = ""
	}
	fmt.Fprintln(c.Stderr, c.ErrScreen.ColourText(frame.Dim,
		fmt.Sprintf("%s %s with %s%s%s", word, document.Plural(len(reply.GetIds()), "job"),
			document.Plural(tasks, "task"), where, hint)))
}

func printSubmittedJSON(c *frame.Invocation, list []submit.Job, reply *scheddapi.SubmitReply) error {
	type job struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Tasks int    `json:"tasks"`
	}
	all := make([]job, 0, len(list))
	for i, id := range reply.GetIds() {
		j := job{ID: id}
		if i < len(list) {
			j.Name, j.Tasks = list[i].Name, list[i].Count
		}
		all = append(all, j)
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{"jobs": all, "repeated": reply.GetRepeatedKey(),
		"cell_queue": reply.GetCellQueue()})
}
