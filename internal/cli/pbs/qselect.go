package pbs

import (
	"bufio"
	"cmp"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qselectCommand() *frame.Command {
	return &frame.Command{
		Name: "qselect", Group: frame.GroupPBS, Summary: "list the ids of jobs that meet conditions", RawArgs: true,
		MaxOperands: -1, Run: qselect,
		Synopsis: "[-a [OP]TIME] [-A ACCOUNT] [-c [OP]INTERVAL] [-h HOLDS] [-H] [-J] [-l RESOURCE OP VALUE,…] [-N " +
			"NAME] [-p [OP]PRIORITY] [-P PROJECT] [-q DESTINATION] [-r y|n] [-s STATES] [-t SUBOPTION[OP]TIME] [-T] " +
			"[-u USERS] [-x]",
		Description: "Prints the ids of the jobs that meet all conditions, one a line; without any, of all jobs that " +
			"have not ended, of everybody and from the whole pool. OP is .eq., .ne., .gt., .ge., .lt. or .le., and " +
			".eq. where none is given. TIME is a date as qsub -a takes it. That nothing meets the conditions " +
			"is no error.",
		Examples: []frame.Example{
			{Line: "qselect -u ann -s QW", Description: "Ann's jobs that wait"},
			{Line: "qdel $(qselect -u ann -l walltime.gt.24:00:00)",
				Description: "delete those that want more than a day"},
			{Line: "qselect -x -t q.ge.202611010000",
				Description: "what was submitted since the first of November, ended or not"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("a", "[OP]TIME", "by the time before which they do not start"),
			pbsframe.ShortFlag("A", "ACCOUNT", "of this account"),
			pbsframe.ShortFlag("c", "[OP]INTERVAL",
				"by how often checkpoints are taken: n, s, c=MINUTES, c or u, from seldom to often"),
			pbsframe.ShortFlag("h", "HOLDS", "with exactly these holds: letters of u, o and s, or n for none"),
			pbsframe.ShortFlag("H", "", "only jobs that have ended"),
			pbsframe.ShortFlag("J", "", "only arrays, and with -T their tasks"),
			pbsframe.ShortFlag("l", "RESOURCE OP VALUE",
				"by what they ask for, as in ncpus.ge.4,mem.lt.8gb; also with = != > >= < <="),
			pbsframe.ShortFlag("N", "NAME", "of this name"),
			pbsframe.ShortFlag("p", "[OP]PRIORITY", "by their priority"),
			pbsframe.ShortFlag("P", "PROJECT", "the same as -A"),
			pbsframe.ShortFlag("q", "DESTINATION", "of a QUEUE, submitted at a @NODE, or both: QUEUE@NODE"),
			pbsframe.ShortFlag("r", "y|n", "that may be run twice, or may not"),
			pbsframe.ShortFlag("s", "STATES", "in one of these states: letters of BEFHMQRSTUWX"),
			pbsframe.ShortFlag("t", "SUBOPTION[OP]TIME",
				"by a time of theirs: a for -a, c or q submitted, e ready to run, m last changed, s started"),
			pbsframe.ShortFlag("T", "", "arrays with their tasks"),
			pbsframe.ShortFlag("u", "USERS", "of these users, with commas between them"),
			pbsframe.ShortFlag("x", "", "also jobs that have ended"),
		},
	}
}

func qselect(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "a:A:c:h:HJl:N:p:P:q:r:s:t:Tu:x")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if len(o.Operands) > 0 {
		return pbsframe.PrintUsage(c, "")
	}
	dialect, err := pbsframe.Dialect(c)
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	wanted := &qselectFilter{Invocation: c, dialect: dialect}
	if refused := wanted.readOptions(o); refused != nil {
		fmt.Fprintf(c.Stderr, "qselect: %v\n", refused)
		return frame.ExitError(refused.code)
	}
	if wanted.scheddNode != "" {
		node, ok := pbsframe.FindServer(c, wanted.scheddNode)
		if !ok {
			return pbsframe.UnknownServer(c, wanted.scheddNode)
		}
		wanted.scheddNode = cmp.Or(node, wanted.scheddNode)
	}
	l := &pbsList{Invocation: c, CommandOptions: qstat.CommandOptions{Full: wanted.needsAds, Subjobs: o.IsSet('T'),
		Ended: o.IsSet('x') || o.IsSet('H'), OnlyEnded: o.IsSet('H'), Dialect: dialect}}
	if l.torqueAttributes() {
		l.ArrayElements, l.ExcludeEnded = !o.IsSet('J'), !wanted.completed
		if err := l.readHistoryLimit(); err != nil {
			return pbsframe.Fail(c, err)
		}
	}
	out := bufio.NewWriter(c.Stdout)
	err = l.listAll("", wanted.scheddNode, func(s *scheddapi.JobStatus) error {
		if wanted.matches(s) {
			fmt.Fprintln(out, pbsframe.IDText(s.GetId(), s.GetArray()))
		}
		return nil
	})
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	return nil
}

// matches reports whether a job meets all conditions.
func (w *qselectFilter) matches(s *scheddapi.JobStatus) bool {
	j := qselectJob{JobStatus: s, Invocation: w.Invocation}
	for _, c := range w.conditions {
		if !c(&j) {
			return false
		}
	}
	return true
}

// qselectJob is a job that is looked at, with what qstat -f says of it.
type qselectJob struct {
	*scheddapi.JobStatus
	*frame.Invocation
	attributes map[string]string
}

// attribute is an attribute of qstat -f; empty when the job has none of that name.
func (j *qselectJob) attribute(name string) string {
	if j.attributes == nil {
		j.attributes = make(map[string]string)
		for _, a := range newPBSJob(j.Invocation, j.JobStatus).attributes() {
			if a.Resource != "" {
				a.Name += "." + a.Resource
			}
			j.attributes[a.Name] = a.Value
		}
	}
	return j.attributes[name]
}

// userName takes the host off "ann@n1".
func userName(name string) string {
	name, _, _ = strings.Cut(strings.TrimSpace(name), "@")
	return name
}
