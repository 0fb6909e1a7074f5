package pbs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// qenable, qdisable, qstart and qstop are what operators of PBS type instead of a line of
// qmgr.

func qswitchCommand(name, field string, on bool, brief, about string) *frame.Command {
	return &frame.Command{
		Name: name, Group: frame.GroupPBS, Summary: brief, Synopsis: "QUEUE[@SERVER]…", RawArgs: true, MaxOperands: -1,
		Description: about,
		Examples: []frame.Example{
			{Line: name + " short", Description: "one queue"},
			{Line: name + " short long@n1",
				Description: "two of them; the queues are the pool's, whichever server is named"},
		},
		Run: func(c *frame.Invocation) error { return switchQueue(c, field, on) },
	}
}

func qenableCommand() *frame.Command {
	return qswitchCommand("qenable", "enabled", true, "let queues take jobs",
		"Lets queues take jobs. What is in them is as before.")
}

func qdisableCommand() *frame.Command {
	return qswitchCommand("qdisable", "enabled", false, "let queues take no more jobs",
		"Lets queues take no more jobs. What is in them goes on.")
}

func qstartCommand() *frame.Command {
	return qswitchCommand("qstart", "started", true, "let the jobs of queues start",
		"Lets the jobs of queues start, and those of routing queues go on.")
}

func qstopCommand() *frame.Command {
	return qswitchCommand("qstop", "started", false, "let no more jobs of queues start",
		"Lets no more jobs of queues start. What runs goes on.")
}

func switchQueue(c *frame.Invocation, field string, on bool) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "")
	if err != nil || len(o.Operands) == 0 {
		return pbsframe.PrintUsage(c, "")
	}
	s := &qmgrSession{Invocation: c}
	all, err := s.queues()
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	code := 0
	for _, text := range o.Operands {
		name, _, _ := strings.Cut(text, "@")
		at := slices.IndexFunc(all, func(q ledger.QueuePolicy) bool { return q.Name == name })
		err := error(&qmgrError{pbseUnknownQueue, "Unknown queue"})
		if at >= 0 {
			value := map[bool]string{true: "True", false: "False"}[on]
			err = s.changeQueue(all[at], all[at], []qmgr.AttributeChange{{Name: field, Op: "=", Value: value}})
		}
		if err != nil {
			words, why, more := strings.Cut(qmgrErrorText(err), ": ")
			if more {
				why = ": " + why
			}
			fmt.Fprintf(c.Stderr, "%s: %s %s%s\n", c.Command.Name, words, text, why)
			code = qmgrErrorNumber(err) & 0xff
		}
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}
