package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// qenable, qdisable, qstart and qstop are what operators of PBS type instead of a line of
// qmgr.

func qswitchCommand(name, field string, on bool, brief, about string) *command {
	return &command{
		name: name, group: groupPBS, summary: brief, synopsis: "QUEUE[@SERVER]…", rawArgs: true, maxOperands: -1,
		description: about,
		examples: []commandExample{
			{name + " short", "one queue"},
			{name + " short long@n1", "two of them; the queues are the pool's, whichever server is named"},
		},
		run: func(c *invocation) error { return c.switchQueue(field, on) },
	}
}

func qswitchCommands() []*command {
	return []*command{
		qswitchCommand("qenable", "enabled", true, "let queues take jobs",
			"Lets queues take jobs. What is in them is as before."),
		qswitchCommand("qdisable", "enabled", false, "let queues take no more jobs",
			"Lets queues take no more jobs. What is in them goes on."),
		qswitchCommand("qstart", "started", true, "let the jobs of queues start",
			"Lets the jobs of queues start, and those of routing queues go on."),
		qswitchCommand("qstop", "started", false, "let no more jobs of queues start",
			"Lets no more jobs of queues start. What runs goes on."),
	}
}

func (c *invocation) switchQueue(field string, on bool) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "")
	if err != nil || len(o.operands) == 0 {
		return c.pbsUsage("")
	}
	s := &qmgrSession{invocation: c}
	all, err := s.queues()
	if err != nil {
		return c.pbsFail(err)
	}
	code := 0
	for _, text := range o.operands {
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
			fmt.Fprintf(c.stderr, "%s: %s %s%s\n", c.cmd.name, words, text, why)
			code = qmgrErrorNumber(err) & 0xff
		}
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}
