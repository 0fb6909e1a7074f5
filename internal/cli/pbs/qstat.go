package pbs

import (
	"bufio"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
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
			shortFlag("f", "", "everything about each job, queue or server, an attribute a line"),
			shortFlag("F", "FORMAT", "of -f: json, dsv for one line each, or default"),
			shortFlag("D", "DELIMITER",
				"what stands between the attributes of -F dsv, | unless given; it comes behind -F"),
			shortFlag("a", "",
				"in the other layout of OpenPBS, with what jobs ask for; so, too, with all options up to -M"),
			shortFlag("i", "", "only jobs that wait, are held or end"),
			shortFlag("r", "", "only jobs that run or are suspended"),
			shortFlag("H", "", "only jobs that have ended"),
			shortFlag("T", "", "with when they are expected to start, in that order"),
			shortFlag("u", "USERS", "only jobs of these users, with commas between them"),
			shortFlag("n", "", "with the machines that each job runs on"),
			shortFlag("s", "", "with a line about why a job waits or where it runs"),
			shortFlag("G", "", "memory in gigabytes"),
			shortFlag("M", "", "memory in millions of words, of 8 bytes"),
			shortFlag("x", "", "also jobs that have ended; for who speaks Torque everything about each job, as XML"),
			shortFlag("t", "", "also the tasks of arrays"),
			shortFlag("J", "", "only arrays"),
			shortFlag("p", "", "how much of each job is done, in percent, in place of the time used"),
			shortFlag("w", "", "wide: more is shown of names, and lines of -f are not folded"),
			shortFlag("1", "", "with -n and -s: all about a job in one line; with -f: lines are not folded"),
			shortFlag("E", "", "operands are ids of jobs; any number of them are asked about at once in any case"),
			shortFlag("Q", "", "the queues, and how many jobs of each kind are in them"),
			shortFlag("q", "", "the queues, and what they allow"),
			shortFlag("B", "", "the servers"),
			shortFlag("c", "", "without jobs that have ended, as in Torque"),
			shortFlag("e", "", "only jobs that are in execution queues, as in Torque: all are"),
			shortFlag("l", "", "taken as in Torque; servers have no other names here"),
			shortFlag("R", "", "the same as -a; columns about disks, which Torque has, are left out"),
			shortFlag("W", "LETTERS",
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
	if answersVersion(c) {
		return nil
	}
	found, err := getopt(c.Args, qstat.OptionSpec)
	if err != nil {
		fmt.Fprintf(c.Stderr, "qstat: %v\n%s", err, qstatUsage)
		return frame.ExitError(2)
	}
	o, wrong := qstat.ParseCommandLine(found.order)
	if len(wrong) > 0 {
		fmt.Fprint(c.Stderr, strings.Join(wrong, "\n"), qstatUsage)
		return frame.ExitError(2)
	}
	dialect, err := dialect(c)
	if err != nil {
		return pbsFail(c, err)
	}
	o.InDialect(dialect)
	out := bufio.NewWriterSize(c.Stdout, 64<<10)
	l := &pbsList{Invocation: c, CommandOptions: o, operands: found.operands, out: out}
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
		return pbsFail(c, err)
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
		code, err = l.run(func(s *wire.JobStatus) error { return full.Print(l.object(s)) })
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
		code, err = l.run(func(s *wire.JobStatus) error {
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
	return l.run(func(s *wire.JobStatus) error { return table.Print(l.pbsRow(s)) })
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
		return qstat.NewJSON(l.out, l.Now(), pbsVersion(), server), err
	case "dsv":
		return qstat.NewDelimited(l.out, l.Delimiter), nil
	}
	return qstat.NewLines(l.out, l.Wide), nil
}

// pbsVersion is the version that clients are told: that of OpenPBS which the commands are
// like, in its old spelling, by which clients know what they can say, and that of Roost.
func pbsVersion() string { return "PBSPro_23.06.06 (" + roostVersion() + ")" }

// roostVersion is that of Roost, with its name before it.
func roostVersion() string { return "roost-" + roost.Version }
