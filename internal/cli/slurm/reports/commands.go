package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/slurm/cluster"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/records"
)

// Entries is the table of these commands in the order of the help.
func Entries() (entries []frame.CommandEntry) {
	for _, e := range []frame.CommandEntry{
		frame.Entry("squeue", squeueCommand), frame.Entry(frame.SlurmPrefix+"sacct", sacctCommand),
		frame.Entry("scontrol", scontrolCommand),
		frame.Entry("sinfo", sinfoCommand), frame.Entry("sacctmgr", sacctmgrCommand),
		frame.Entry("sshare", sshareCommand), frame.Entry("sprio", sprioCommand), frame.Entry("sstat", sstatCommand),
	} {
		construct := e.Make
		e.Make = func() *frame.Command {
			c := construct()
			c.LinkProgram = frame.LocalProgram // clients call these every few seconds
			return c
		}
		entries = append(entries, e)
	}
	return entries
}

// slurmVersion is the release of Slurm whose commands these are like.
const slurmVersion = "24.11.5"

// failure is the exit status of these commands for whatever went wrong.
const failure = 1

// ownName is the name of the command in Slurm.
func ownName(c *frame.Invocation) string {
	return strings.TrimPrefix(c.Command.Name, frame.SlurmPrefix)
}

// fail prints why something cannot be done, as Slurm does: with the name of the command.
func fail(c *frame.Invocation, text string) error {
	fmt.Fprintf(c.Stderr, "%s: error: %s\n", ownName(c), document.PrintableText(text))
	return frame.ExitError(failure)
}

// failWith prints an error of a schedd.
func failWith(c *frame.Invocation, err error) error {
	return fail(c, strings.Join(strings.Fields(frame.ErrorText(err)), " "))
}

// parseOptions takes the command line apart. Answered means that it asked for help or the
// version, and got it.
func parseOptions(c *frame.Invocation, options []getopt.Option) (given []getopt.Given, operands []string,
	answered bool, err error) {
	table := getopt.Table{Options: append(options, getopt.Option{Name: "help"}, getopt.Option{Name: "usage"},
		getopt.Option{Name: "version", Letter: 'V'})}
	given, operands, err = table.Parse(c.Args)
	for _, g := range given {
		switch g.Name {
		case "help", "usage":
			c.PrintHelp(c.Stdout, c.Command)
			return nil, nil, true, nil
		case "version":
			fmt.Fprintln(c.Stdout, "slurm "+slurmVersion)
			return nil, nil, true, nil
		}
	}
	if err != nil {
		fmt.Fprint(c.Stderr, getopt.Message(ownName(c), err))
		return nil, nil, false, frame.ExitError(failure)
	}
	names, _ := getopt.Last(given, "clusters")
	if err := cluster.Choose(c, ownName(c), names); err != nil {
		return nil, nil, false, err
	}
	return given, operands, false, nil
}

// printCluster prints whose rows follow, where --clusters is given.
func printCluster(c *frame.Invocation, out io.Writer, given []getopt.Given) {
	if _, named := getopt.Last(given, "clusters"); !named || has(given, "noheader") {
		return
	}
	if name, err := c.ServerName(); err == nil {
		fmt.Fprintln(out, "CLUSTER: "+document.PrintableText(cmp.Or(c.ScheddNode, name)))
	}
}

// clock is how this command writes times.
func clock(c *frame.Invocation) *records.Clock {
	return &records.Clock{Now: c.Now(), Zone: time.Local, Format: c.Getenv("SLURM_TIME_FORMAT")}
}

// has reports whether an option is on the command line.
func has(given []getopt.Given, name string) bool {
	_, ok := getopt.Last(given, name)
	return ok
}

// list is the parts of the values of an option, with commas between.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
