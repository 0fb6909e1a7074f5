package pbs

import (
	"bufio"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qstatCommand() *frame.Command {
	return &frame.Command{
		Name: "qstat", Group: frame.GroupPBS, Summary: "list jobs, queues and servers as PBS does", RawArgs: true,
		MaxOperands: -1, Run: runQstat,
		Synopsis: "[-f [-F FORMAT] [-D DELIMITER]] [-a|-i|-r|-H|-T] [-JptxEwns1celR] [-u USERS] [-G|-M] " +
			"[JOB…|DESTINATION…] | -Q [-f] [DESTINATION…] | -q [-G|-M] [DESTINATION…] | -B [-f] [SERVER…]",
		Description: "Lists the jobs of all users that have not ended, from wherever in the pool they were " +
			"submitted, or the jobs named, or those of a queue, or as @NODE those submitted at a node, in the " +
			"layouts of OpenPBS. A job that has ended is shown with -x or -H only.",
		Examples: []frame.Example{
			{Line: "qstat", Description: "all jobs"},
			{Line: "qstat @n2", Description: "those that were submitted at n2"},
			{Line: "qstat -s 123", Description: "why a job waits"},
			{Line: "qstat -fx 123", Description: "everything about a job that may have ended"},
			{Line: "qstat -f -F json -x 123 124", Description: "the same of two, for a program"},
			{Line: "qstat -Q", Description: "the queues"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("f", "", "everything about each job, queue or server, an attribute a line"),
			pbsframe.ShortFlag("F", "FORMAT", "of -f: json, dsv for one line each, or default"),
			pbsframe.ShortFlag("D", "DELIMITER",
				"what stands between the attributes of -F dsv, | unless given; it comes behind -F"),
			pbsframe.ShortFlag("a", "",
				"in the other layout of OpenPBS, with what jobs ask for; so, too, with all options up to -M"),
			pbsframe.ShortFlag("i", "", "only jobs that wait, are held or end"),
			pbsframe.ShortFlag("r", "", "only jobs that run or are suspended"),
			pbsframe.ShortFlag("H", "", "only jobs that have ended"),
			pbsframe.ShortFlag("T", "", "with when they are expected to start, in that order"),
			pbsframe.ShortFlag("u", "USERS", "only jobs of these users, with commas between them"),
			pbsframe.ShortFlag("n", "", "with the machines that each job runs on"),
			pbsframe.ShortFlag("s", "", "with a line about why a job waits or where it runs"),
			pbsframe.ShortFlag("G", "", "memory in gigabytes"),
			pbsframe.ShortFlag("M", "", "memory in millions of words, of 8 bytes"),
			pbsframe.ShortFlag("x", "",
				"also jobs that have ended; for who speaks Torque everything about each job, as XML"),
			pbsframe.ShortFlag("t", "", "also the tasks of arrays"),
			pbsframe.ShortFlag("J", "", "only arrays"),
			pbsframe.ShortFlag("p", "", "how much of each job is done, in percent, in place of the time used"),
			pbsframe.ShortFlag("w", "", "wide: more is shown of names, and lines of -f are not folded"),
			pbsframe.ShortFlag("1", "", "with -n and -s: all about a job in one line; with -f: lines are not folded"),
			pbsframe.ShortFlag("E", "",
				"operands are ids of jobs; any number of them are asked about at once in any case"),
			pbsframe.ShortFlag("Q", "", "the queues, and how many jobs of each kind are in them"),
			pbsframe.ShortFlag("q", "", "the queues, and what they allow"),
			pbsframe.ShortFlag("B", "", "the servers"),
			pbsframe.ShortFlag("c", "", "without jobs that have ended, as in Torque"),
			pbsframe.ShortFlag("e", "", "only jobs that are in execution queues, as in Torque: all are"),
			pbsframe.ShortFlag("l", "", "taken as in Torque; servers have no other names here"),
			pbsframe.ShortFlag("R", "", "the same as -a; columns about disks, which Torque has, are left out"),
			pbsframe.ShortFlag("W", "LETTERS",
				"the options of these letters, of a i r H n s q G M and 1, or u with the rest for its value"),
		},
	}
}

const qstatUsage = `usage: 
qstat [-f] [-J] [-p] [-t] [-x] [-E] [-F format | -w] [-D delim] [ job_identifier... | destination... ]
qstat [-a|-i|-r|-H|-T] [-J] [-t] [-u user] [-n] [-s] [-G|-M] [-1] [-w]
	[ job_identifier... | destination... ]
qstat -Q [-f] [-F format] [-D delim] [ destination... ]
qstat -q [-G|-M] [ destination... ]
qstat -B [-f] [-F format] [-D delim] [ server_name... ]
qstat --version
`

func runQstat(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	found, err := pbsframe.ParseOptions(c.Args, qstat.OptionSpec)
	if err != nil {
		fmt.Fprintf(c.Stderr, "qstat: %v\n%s", err, qstatUsage)
		return frame.ExitError(2)
	}
	o, wrong := qstat.ParseCommandLine(found.Order)
	if len(wrong) > 0 {
		fmt.Fprint(c.Stderr, strings.Join(wrong, "\n"), qstatUsage)
		return frame.ExitError(2)
	}
	dialect, err := pbsframe.Dialect(c)
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	o.InDialect(dialect)
	out := bufio.NewWriterSize(c.Stdout, 64<<10)
	l := &pbsList{Invocation: c, CommandOptions: o, operands: found.Operands, out: out}
	var code int
	switch o.Mode {
	case qstat.ListQueues:
		code, err = l.queues()
	case qstat.ListServers:
		code, err = l.servers()
	default:
		code, err = l.jobs()
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// jobs prints jobs in one of the layouts.
func (l *pbsList) jobs() (code int, err error) {
	switch {
	case l.Full:
		full, err := l.full()
		if err != nil {
			return 0, err
		}
		code, err = l.run(func(s *scheddapi.JobStatus) error { return full.Print(l.object(s)) })
		if cerr := full.Close(); err == nil {
			err = cerr
		}
		return code, err
	case l.Alternate:
		settings := qstat.AlternateList{
			Writer: l.out, Wide: l.Wide, Hosts: l.Hosts, Comments: l.Comments, SameLine: l.SameLine,
			Gigabytes: l.Gigabytes, Megawords: l.Megawords, Estimates: l.Estimates, Now: l.Now(),
		}
		var table alternateList = &settings
		server := &settings.Server
		if l.torqueAttributes() {
			t := &qstat.TorqueList{AlternateList: settings}
			table, server = t, &t.Server
		}
		code, err = l.run(func(s *scheddapi.JobStatus) error {
			if *server == "" {
				_, *server, _ = strings.Cut(s.GetId(), ".")
			}
			return table.Print(l.pbsRow(s))
		})
		if cerr := table.Close(); err == nil {
			err = cerr
		}
		return code, err
	}
	table := qstat.NewTable(l.out, l.Wide, l.PercentDone)
	if l.torqueAttributes() && !l.Wide && !l.PercentDone {
		table = qstat.NewTorqueTable(l.out)
	}
	return l.run(func(s *scheddapi.JobStatus) error { return table.Print(l.pbsRow(s)) })
}

// alternateList is the other list of a dialect.
type alternateList interface {
	Print(r *qstat.JobRow) error
	Close() error
}

// full is what prints everything about objects, in the format that was asked for.
func (l *pbsList) full() (qstat.FullPrinter, error) {
	if l.XML {
		return qstat.NewXML(l.out, len(l.operands) == 0), nil
	}
	switch l.Format {
	case "json":
		server, err := l.ServerName()
		return qstat.NewJSON(l.out, l.Now(), pbsframe.Version(), server), err
	case "dsv":
		return qstat.NewDelimited(l.out, l.Delimiter), nil
	}
	return qstat.NewLines(l.out, l.Wide), nil
}
