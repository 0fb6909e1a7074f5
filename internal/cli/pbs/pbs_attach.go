package pbs

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func pbsAttachCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_attach", Group: frame.GroupPBS, Summary: "run a command as a part of a job",
		Synopsis: "[-j JOB] [-s] COMMAND [ARGUMENT…]", RawArgs: true, MaxOperands: -1, Run: pbsAttach,
		Description: "Runs a command as a part of a job of yours that runs: on its first machine, within what it has " +
			"there, and ended with it, as roost ssh does. In a job, without -j, the command is a part of it anyway " +
			"and is run as it is.",
		Examples: []frame.Example{
			{Line: "pbs_attach -j 123 ./monitor", Description: "watch a job from within"},
			{Line: "pbs_attach -j '123[7]' ps aux", Description: "what runs in a task"},
		},
		Flags: []ucli.Flag{pbsframe.ShortFlag("j", "JOB", "the job, or a task of an array"),
			pbsframe.ShortFlag("s", "", "taken, and does nothing: the command is always a part of the job's session")},
	}
}

func pbsAttach(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	own, command := pbsframe.CutLeadingOptions(c.Args, "jmp")
	o, err := pbsframe.ParseOptions(own, "j:m:p:Ps")
	switch {
	case err != nil:
		return pbsframe.PrintUsage(c, err.Error())
	case o.IsSet('p'):
		return pbsframe.FailUnsupported(c,
			"-p: what runs outside of a job cannot become a part of it; start it with: pbs_attach "+
				"-j JOB COMMAND")
	case o.IsSet('P') || o.IsSet('m'):
		return pbsframe.FailUnsupported(c, "-P and -m: there is no daemon to be named, and none to be left out")
	case len(command) == 0:
		return pbsframe.PrintUsage(c, "")
	}
	job := strings.TrimSpace(o.Last('j'))
	here := c.Getenv("PBS_JOBID")
	if job == "" || job == here {
		if here == "" {
			return pbsframe.PrintUsage(c, "this is no job: name one with -j")
		}
		return runLocally(c, command)
	}
	id, ok := pbsframe.ParseID(job)
	if !ok {
		fmt.Fprintf(c.Stderr, "pbs_attach: illegally formed job identifier: %s\n", qstat.VisibleText(job))
		return frame.ExitError(1)
	}
	err = terminal.RunRemoteShell(c, &scheddapi.ShellInput{Task: id, Command: command, Term: c.Getenv("TERM")},
		terminal.LocalTerminal{})
	if code := frame.ExitError(0); err == nil || errors.As(err, &code) {
		return err
	}
	return frame.ExitError(printOperandError(c, job, err, false))
}

// runLocally runs a command, with the streams of this one.
func runLocally(c *frame.Invocation, command []string) error {
	cmd := exec.CommandContext(c.Context, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = c.Stdin, c.Stdout, c.Stderr, c.Env
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		if err != nil {
			fmt.Fprintf(c.Stderr, "pbs_attach: %v\n", err)
			return frame.ExitError(127)
		}
		return nil
	}
	if w, ok := ended.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return frame.ExitError(128 + int(w.Signal()))
	}
	return frame.ExitError(ended.ExitCode())
}
