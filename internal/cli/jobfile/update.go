package jobfile

import (
	"errors"
	"os"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// updateCommands are the flags that are a word about the update of a job. The text done
// is printed afterwards.
var updateCommands = []struct{ name, usage, done string }{
	{"pause", "stop the update for now", "paused"},
	{"resume", "go on with a paused update", "resumed"},
	{"undo", "go back to the revision before", "goes back to the revision before"},
	{"promote", "accept the canaries and go on with the other tasks", "promoted"},
	{"abort", "give the update up; each task stays as it is", "aborted"},
	{"close", "forget the revision before", "closed"},
	{"pulse", "allow the update to go on for another pulse interval", "goes on"},
}

// UpdateCommand returns roost update: give a service a new revision.
func UpdateCommand() *frame.Command {
	flags := []ucli.Flag{
		&ucli.BoolFlag{Name: "plan", Usage: "only print what would change and what that does"},
		&ucli.StringFlag{Name: "job", Usage: "the `JOB` to update; default: your service of the name in the job file"},
		&ucli.StringSliceFlag{Name: "var",
			Usage: "set a variable of the job file, as `NAME=VALUE`; may be repeated"},
		waitFlag(), frame.JSONFlag(),
	}
	for _, w := range updateCommands {
		flags = append(flags, &ucli.BoolFlag{Name: w.name, Usage: w.usage})
	}
	return &frame.Command{
		Name: "update", Group: frame.GroupChange, Summary: "give a service a new revision", Synopsis: "FILE|JOB",
		MinOperands: 1, MaxOperands: 1, OperandName: "a job file or a job", Run: updateService,
		Description: "Makes a service what the job file says, see roost-job(5). Tasks are replaced one after " +
			"another, within the update block of the job. With one of the flags from --pause to --pulse, the " +
			"operand is a job, and the flag is a word about its update.",
		Examples: []frame.Example{
			{Line: "roost update hub.hcl", Description: "update the service"},
			{Line: "roost update --plan hub.hcl", Description: "what would change"},
			{Line: "roost update --undo @hub", Description: "go back to the revision before"},
		},
		Flags: flags,
	}
}

func waitFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "wait", Aliases: []string{"w"},
		Usage: "wait until the update has ended; the exit status is 1 unless all tasks are new"}
}

// RestartCommand returns roost restart: start the tasks of services again.
func RestartCommand() *frame.Command {
	return &frame.Command{
		Name: "restart", Group: frame.GroupChange, Summary: "start the tasks of a service again", Synopsis: "JOB…",
		MinOperands: 1, MaxOperands: -1, OperandName: "a job",
		Run: func(c *frame.Invocation) error {
			return jobs.OrderUpdate(c, c.Args, &scheddapi.UpdateOrder{}, "restarted")
		},
		Description: "Stops each task of a service and starts it again, one after another, as roost update does. " +
			"Nothing else changes.",
		Examples: []frame.Example{
			{Line: "roost restart @hub", Description: "restart your service of that name"},
			{Line: "roost restart --wait 123", Description: "and wait until each task has been started again"},
		},
		Flags: []ucli.Flag{waitFlag(), frame.JSONFlag()},
	}
}

// ScaleCommand returns roost scale: give a service another number of tasks.
func ScaleCommand() *frame.Command {
	return &frame.Command{
		Name: "scale", Group: frame.GroupChange, Summary: "give a service another number of tasks",
		Synopsis: "JOB COUNT", MinOperands: 2, MaxOperands: 2, OperandName: "a job and a number of tasks",
		Run: func(c *frame.Invocation) error {
			n, err := strconv.ParseUint(c.Args[1], 10, 32)
			if err != nil || n < 1 || n > roost.MaxTasks {
				return frame.UsageErrorf("%q is no number of tasks: write 1 to %d", c.Args[1], roost.MaxTasks)
			}
			return jobs.OrderUpdate(c, c.Args[:1], &scheddapi.UpdateOrder{CountOnly: true, Count: uint32(n),
				Plan: c.Flag("plan")}, "scaled")
		},
		Description: "Starts further tasks of a service, or stops those with the highest indexes. The others go on. " +
			"A service with an autoscale block goes on from there: it grows at once if its load asks for that, and " +
			"does not shrink before down_window has passed.",
		Examples: []frame.Example{
			{Line: "roost scale @web 6", Description: "six tasks of your service of that name"},
			{Line: "roost scale --plan 123 2", Description: "what would change"},
		},
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "plan", Usage: "only print what would change and what that does"},
			waitFlag(), frame.JSONFlag()},
	}
}

func updateService(c *frame.Invocation) error {
	for _, w := range updateCommands {
		if !c.Flag(w.name) {
			continue
		}
		for _, other := range updateCommands {
			if other.name != w.name && c.Flag(other.name) {
				return frame.UsageErrorf("--%s and --%s: one of them is wanted", w.name, other.name)
			}
		}
		if c.Flag("plan") || c.StringFlag("job") != "" || len(c.StringsFlag("var")) > 0 {
			return frame.UsageErrorf("--%s is a word about the update of a job: --plan, --job and --var are for "+
				"job files", w.name)
		}
		return jobs.OrderUpdate(c, c.Args, &scheddapi.UpdateOrder{Command: w.name}, w.done)
	}
	if _, err := os.Stat(c.Args[0]); err != nil && strings.IndexAny(c.Args[0], "@0123456789") == 0 {
		return frame.WithHint(frame.UsageErrorf("%s is a job, and an update needs its new job file", c.Args[0]),
			"write the file, or start its tasks again with: roost restart '"+c.Args[0]+"'")
	}
	list, err := ParseJobFile(c, c.Args[0])
	if err != nil {
		return err
	}
	if c.StringFlag("job") != "" && len(list) > 1 {
		return frame.UsageErrorf("--job: %s has %d jobs, and one job can be updated with it", c.Args[0], len(list))
	}
	ids := make([]string, len(list))
	for i := range list {
		if ids[i] = c.StringFlag("job"); ids[i] != "" {
			continue
		}
		if ids[i], err = serviceNamed(c, list[i].Name); err != nil {
			return err
		}
	}
	for i := range list {
		if err := jobs.ReviseService(c, ids[i], &list[i], c.Flag("plan")); err != nil {
			return err
		}
	}
	return nil
}

// serviceNamed finds the caller's only job of a name in the queue.
func serviceNamed(c *frame.Invocation, name string) (string, error) {
	found, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{"@" + name},
		Mine: true}})
	if err != nil && !errors.Is(err, roost.NotFound) {
		return "", err
	}
	var ids []string
	for _, s := range found {
		if !document.IsFinal(s) {
			ids = append(ids, s.GetId())
		}
	}
	switch len(ids) {
	case 0:
		return "", frame.WithHint(frame.KindErrorf(roost.NotFound, "you have no job %s in the queue", name),
			"submit it with: roost submit "+c.Args[0])
	case 1:
		return ids[0], nil
	}
	return "", frame.WithHint(frame.UsageErrorf("you have %d jobs named %s: %s", len(ids), name,
		strings.Join(ids, ", ")), "say which with: roost update --job "+ids[0]+" "+c.Args[0])
}
