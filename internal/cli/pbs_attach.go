package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func pbsAttachCommand() *command {
	return &command{
		name: "pbs_attach", group: groupPBS, summary: "run a command as a part of a job",
		synopsis: "[-j JOB] [-s] COMMAND [ARGUMENT…]", rawArgs: true, maxOperands: -1, run: pbsAttach,
		description: "Runs a command as a part of a job of yours that runs: on its first machine, within what it has " +
			"there, and ended with it, as roost ssh does. In a job, without -j, the command is a part of it anyway " +
			"and is run as it is.",
		examples: []commandExample{
			{"pbs_attach -j 123 ./monitor", "watch a job from within"},
			{"pbs_attach -j '123[7]' ps aux", "what runs in a task"},
		},
		flags: []ucli.Flag{shortFlag("j", "JOB", "the job, or a task of an array"),
			shortFlag("s", "", "taken, and does nothing: the command is always a part of the job's session")},
	}
}

func pbsAttach(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	own, command := cutLeadingOptions(c.args, "jmp")
	o, err := getopt(own, "j:m:p:Ps")
	switch {
	case err != nil:
		return c.pbsUsage(err.Error())
	case o.isSet('p'):
		return c.unsupported("-p: what runs outside of a job cannot become a part of it; start it with: pbs_attach " +
			"-j JOB COMMAND")
	case o.isSet('P') || o.isSet('m'):
		return c.unsupported("-P and -m: there is no daemon to be named, and none to be left out")
	case len(command) == 0:
		return c.pbsUsage("")
	}
	job := strings.TrimSpace(o.last('j'))
	here := c.getenv("PBS_JOBID")
	if job == "" || job == here {
		if here == "" {
			return c.pbsUsage("this is no job: name one with -j")
		}
		return c.runLocally(command)
	}
	id, ok := parsePBSID(job)
	if !ok {
		fmt.Fprintf(c.stderr, "pbs_attach: illegally formed job identifier: %s\n", qstat.VisibleText(job))
		return exitError(1)
	}
	err = c.runRemoteShell(&wire.ShellInput{Task: id, Command: command, Term: c.getenv("TERM")}, localTerminal{})
	if code := exitError(0); err == nil || errors.As(err, &code) {
		return err
	}
	return exitError(c.printOperandError(job, err, false))
}

// runLocally runs a command, with the streams of this one.
func (c *invocation) runLocally(command []string) error {
	cmd := exec.CommandContext(c.ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = c.stdin, c.stdout, c.stderr, c.env
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		if err != nil {
			fmt.Fprintf(c.stderr, "pbs_attach: %v\n", err)
			return exitError(127)
		}
		return nil
	}
	if w, ok := ended.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitError(128 + int(w.Signal()))
	}
	return exitError(ended.ExitCode())
}
