package condor

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/document"
)

// Entries is the table of these commands in the order of the help.
func Entries() []frame.CommandEntry {
	return []frame.CommandEntry{
		frame.Entry("condor_submit", submitCommand), frame.Entry("condor_q", queueCommand),
		frame.Entry("condor_history", historyCommand), frame.Entry("condor_rm", removeCommand),
		frame.Entry("condor_hold", holdCommand), frame.Entry("condor_release", releaseCommand),
		frame.Entry("condor_wait", waitCommand),
		frame.Entry("condor_status", statusCommand), frame.Entry("condor_version", versionCommand),
	}
}

// failure is the exit status of these commands for whatever went wrong.
const failure = 1

// refuse prints why a command line is wrong.
func refuse(c *frame.Invocation, err error) error {
	fmt.Fprintf(c.Stderr, "Error: %s\nusage: %s %s\n", document.PrintableText(err.Error()), c.Command.Name,
		c.Command.Synopsis)
	return frame.ExitError(failure)
}

// fail prints why something cannot be done.
func fail(c *frame.Invocation, err error) error {
	text := strings.Join(strings.Fields(frame.ErrorText(err)), " ")
	fmt.Fprintf(c.Stderr, "ERROR: %s\n", document.PrintableText(text))
	return frame.ExitError(failure)
}

// parseArguments takes the command line apart. Answered means that it asked for help or
// the version, and got it.
func parseArguments(c *frame.Invocation, words []condor.OptionWord) (l condor.CommandLine, answered bool, err error) {
	words = append(words, condor.OptionWord{Word: "help", Least: 1}, condor.OptionWord{Word: "version", Least: 2},
		condor.OptionWord{Word: "debug", Least: 5}, condor.OptionWord{Word: "name", Least: 1, Values: 1},
		condor.OptionWord{Word: "pool", Least: 4, Values: 1})
	if l, err = condor.ParseCommandLine(c.Args, words); err != nil {
		return l, false, err
	}
	switch {
	case l.Has("help"):
		c.PrintHelp(c.Stdout, c.Command)
		return l, true, nil
	case l.Has("version"):
		printVersion(c)
		return l, true, nil
	}
	if node := l.Last("name"); node != "" {
		c.ScheddNode = node
	}
	return l, false, nil
}
