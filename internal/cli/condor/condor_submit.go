package condor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobfile"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/translate"
)

func submitCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_submit", Group: frame.GroupCondor, Summary: "submit the jobs of a submit description",
		RawArgs: true, MaxOperands: -1, Run: runSubmit,
		Synopsis: "[-terse] [-append COMMAND] [-batch-name NAME] [-dry-run FILE] [NAME=VALUE]… [FILE | -] " +
			"[-queue ARGUMENTS]",
		Description: "Reads a submit description of HTCondor and puts its jobs into the queue of this machine. What " +
			"cannot be carried over is a warning on standard error, see roost translate; a mistake submits nothing.",
		Examples: []frame.Example{
			{Line: "condor_submit sim.sub", Description: "submit a file"},
			{Line: "condor_submit -terse -append 'request_memory = 4 GB' seed=7 sim.sub",
				Description: "with another request and a macro; print the first and the last id"},
			{Line: "condor_submit -dry-run - sim.sub", Description: "print the job file that it becomes"},
		},
	}
}

// submitRequest is the command line of condor_submit.
type submitRequest struct {
	condor.SubmitCommandLine
	file    string // "-": standard input
	terse   bool
	dryRun  string // the file to write instead of submitting
	isTrial bool
}

func parseSubmit(l condor.CommandLine) (r submitRequest, err error) {
	r.terse, r.Appended = l.Has("terse"), l.Values("append")
	r.Appended = append(r.Appended, l.Values("a")...)
	r.HasQueue, r.Queue = l.Has("queue"), strings.Join(l.Values("queue"), " ")
	r.isTrial, r.dryRun = l.Has("dry-run"), l.Last("dry-run")
	if name := l.Last("batch-name"); name != "" {
		r.Appended = append(r.Appended, "batch_name = "+name)
	}
	for _, text := range l.Operands {
		switch {
		case condor.IsMacro(text):
			r.Macros = append(r.Macros, text)
		case r.file != "":
			return r, fmt.Errorf("%s and %s: one submit description is read", r.file, text)
		default:
			r.file = text
		}
	}
	if r.file == "" {
		r.file = "-"
	}
	return r, nil
}

func runSubmit(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, []condor.OptionWord{{Word: "terse", Least: 2},
		{Word: "append", Least: 2, Values: 1}, {Word: "a", Least: 1, Values: 1},
		{Word: "batch-name", Least: 2, Values: 1}, {Word: "dry-run", Least: 2, Values: 1},
		{Word: "queue", Least: 1, Values: condor.Rest}, {Word: "verbose", Least: 1}, {Word: "disable", Least: 2},
		{Word: "unused", Least: 2}})
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	r, err := parseSubmit(l)
	if err != nil {
		return refuse(c, err)
	}
	src, err := jobs.ReadInput(c, r.file)
	if err != nil {
		return fail(c, err)
	}
	if err := r.Check(string(src)); err != nil {
		return fail(c, err)
	}
	list, translated, err := translateJobs(c, r, src)
	if err != nil {
		return err
	}
	if r.isTrial {
		return writeTrial(c, r.dryRun, translated)
	}
	reply, err := jobs.SubmitTo(c, jobs.HostQueue, list, "", nil)
	if err != nil {
		return fail(c, err)
	}
	printSubmitted(c, r.terse, list, reply.GetIds())
	return nil
}

// translateJobs makes jobs of a submit description, and prints what was not carried over.
func translateJobs(c *frame.Invocation, r submitRequest, src []byte) ([]submit.Job, string, error) {
	shown, file := r.file, r.file
	if file == "-" {
		shown, file = "standard input", ""
	}
	opts, err := c.SubmitOptions()
	if err != nil {
		return nil, "", fail(c, err)
	}
	queue := r.Queue
	if r.HasQueue && queue == "" {
		queue = "1"
	}
	result, err := translate.TranslateFile(src, translate.SourceOptions{Name: file, From: translate.Condor,
		Files: opts.Files, Dir: opts.Dir, Home: opts.Home, Environ: opts.Environ, Now: opts.Now, Seed: rand.Uint64(),
		Macros: r.Macros, Append: r.Appended, DefaultQueue: queue, SeparateItems: !r.isTrial})
	if err != nil {
		return nil, "", fail(c, errors.New(shown+": "+err.Error()))
	}
	if isWrong := printNotes(c, shown, result.Notes); isWrong {
		return nil, "", frame.ExitError(failure)
	}
	opts.Filename, opts.Items = shown+" as a job file", result.Items
	list, err := jobfile.ParsedJobs(c, []byte(result.Text), opts)
	if err != nil {
		var status frame.ExitError
		if !errors.As(err, &status) { // what is wrong is not printed yet
			fmt.Fprintf(c.Stderr, "ERROR: %s\n", document.PrintableText(frame.ErrorText(err)))
		}
		return nil, "", frame.ExitError(failure)
	}
	return list, result.Text, nil
}

// printNotes prints what is different or was not carried over as warnings, and mistakes
// as errors. It reports whether there is one.
func printNotes(c *frame.Invocation, shown string, notes []translate.Note) (isWrong bool) {
	for _, n := range notes {
		place, word := cmp.Or(n.File, shown), "WARNING"
		if n.Line > 0 {
			place += fmt.Sprintf(": line %d", n.Line)
		}
		if n.Source != "" {
			place += ": " + n.Source
		}
		if n.Kind == translate.Mistake {
			word, isWrong = "ERROR", true
		}
		fmt.Fprintf(c.Stderr, "%s: %s\n", word, document.PrintableText(place+": "+n.Reason))
	}
	return isWrong
}

// writeTrial writes the job file that would have been submitted.
func writeTrial(c *frame.Invocation, file, text string) error {
	if file == "-" {
		_, err := io.WriteString(c.Stdout, text)
		return err
	}
	fmt.Fprintln(c.Stdout, "Dry-Run job(s).")
	if err := os.WriteFile(c.AbsolutePath(file), []byte(text), 0o666); err != nil {
		return fail(c, err)
	}
	return nil
}

// printSubmitted prints what programs look for: the number of jobs and of the cluster.
func printSubmitted(c *frame.Invocation, terse bool, list []submit.Job, ids []string) {
	if terse {
		for i, id := range ids {
			cluster := condor.ClusterOf(id)
			fmt.Fprintf(c.Stdout, "%d.0 - %d.%d\n", cluster, cluster, list[i].Count-1)
		}
		return
	}
	procs := 0
	for _, j := range list {
		procs += j.Count
	}
	fmt.Fprintf(c.Stdout, "Submitting job(s)%s\n", strings.Repeat(".", min(procs, maxDots)))
	for i, id := range ids {
		fmt.Fprintf(c.Stdout, "%d job(s) submitted to cluster %d.\n", list[i].Count, condor.ClusterOf(id))
	}
}

// maxDots bounds the dots, of which HTCondor prints one for each job.
const maxDots = 500
