package cli

import (
	"bufio"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func qstatCommand() *command {
	return &command{
		name: "qstat", group: groupPBS, brief: "list jobs, queues and servers as PBS does", raw: true, most: -1, do: runQstat,
		args:  "[-f [-F FORMAT] [-D DELIMITER]] [-a|-i|-r|-H|-T] [-JptxEwns1celR] [-u USERS] [-G|-M] [JOB…|DESTINATION…] | -Q [-f] [DESTINATION…] | -q [-G|-M] [DESTINATION…] | -B [-f] [SERVER…]",
		about: "Lists the jobs of all users that have not ended, from wherever in the pool they were submitted, or the jobs named, or those of a queue, or as @NODE those submitted at a node, in the layouts of OpenPBS. A job that has ended is shown with -x or -H only.",
		examples: []example{
			{"qstat", "all jobs"},
			{"qstat @n2", "those that were submitted at n2"},
			{"qstat -s 123", "why a job waits"},
			{"qstat -fx 123", "everything about a job that may have ended"},
			{"qstat -f -F json -x 123 124", "the same of two, for a program"},
			{"qstat -Q", "the queues"},
		},
		flags: []ucli.Flag{
			short("f", "", "everything about each job, queue or server, an attribute a line"),
			short("F", "FORMAT", "of -f: json, dsv for one line each, or default"),
			short("D", "DELIMITER", "what stands between the attributes of -F dsv, | unless given; it comes behind -F"),
			short("a", "", "in the other layout of OpenPBS, with what jobs ask for; so, too, with all options up to -M"),
			short("i", "", "only jobs that wait, are held or end"),
			short("r", "", "only jobs that run or are suspended"),
			short("H", "", "only jobs that have ended"),
			short("T", "", "with when they are expected to start, in that order"),
			short("u", "USERS", "only jobs of these users, with commas between them"),
			short("n", "", "with the machines that each job runs on"),
			short("s", "", "with a line about why a job waits or where it runs"),
			short("G", "", "memory in gigabytes"),
			short("M", "", "memory in millions of words, of 8 bytes"),
			short("x", "", "also jobs that have ended; for who speaks Torque everything about each job, as XML"),
			short("t", "", "also the tasks of arrays"),
			short("J", "", "only arrays"),
			short("p", "", "how much of each job is done, in percent, in place of the time used"),
			short("w", "", "wide: more is shown of names, and lines of -f are not folded"),
			short("1", "", "with -n and -s: all about a job in one line; with -f: lines are not folded"),
			short("E", "", "operands are ids of jobs; any number of them are asked about at once in any case"),
			short("Q", "", "the queues, and how many jobs of each kind are in them"),
			short("q", "", "the queues, and what they allow"),
			short("B", "", "the servers"),
			short("c", "", "without jobs that have ended, as in Torque"),
			short("e", "", "only jobs that are in execution queues, as in Torque: all are"),
			short("l", "", "taken as in Torque; servers have no other names here"),
			short("R", "", "the same as -a; columns about disks, which Torque has, are left out"),
			short("W", "LETTERS", "the options of these letters, of a i r H n s q G M and 1, or u with the rest for its value"),
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

func runQstat(c *call) error {
	if c.asksVersion() {
		return nil
	}
	found, err := getopt(c.args, qstat.Letters)
	if err != nil {
		fmt.Fprintf(c.stderr, "qstat: %v\n%s", err, qstatUsage)
		return exit(2)
	}
	o, wrong := qstat.Read(found.order)
	if len(wrong) > 0 {
		fmt.Fprint(c.stderr, strings.Join(wrong, "\n"), qstatUsage)
		return exit(2)
	}
	dialect, err := c.dialect()
	if err != nil {
		return c.pbsFail(err)
	}
	o.In(dialect)
	out := bufio.NewWriterSize(c.stdout, 64<<10)
	l := &pbsList{call: c, Options: o, operands: found.operands, out: out}
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
		return c.pbsFail(err)
	}
	if code != 0 {
		return exit(code)
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
		settings := qstat.Alternate{
			W: l.out, Wide: l.Wide, Hosts: l.Hosts, Comments: l.Comments, Behind: l.Behind, Gigabytes: l.Gigabytes, Megawords: l.Megawords, Estimates: l.Estimates, Now: l.now(),
		}
		var table alternate = &settings
		server := &settings.Server
		if l.torque() {
			t := &qstat.TorqueList{Alternate: settings}
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
	table := qstat.NewTable(l.out, l.Wide, l.Done)
	if l.torque() && !l.Wide && !l.Done {
		table = qstat.NewTorqueTable(l.out)
	}
	return l.run(func(s *wire.JobStatus) error { return table.Print(l.pbsRow(s)) })
}

// alternate is the other list of a dialect.
type alternate interface {
	Print(r *qstat.Row) error
	Close() error
}

// full is what prints everything about objects, in the format that was asked for.
func (l *pbsList) full() (qstat.Full, error) {
	if l.XML {
		return qstat.NewXML(l.out, len(l.operands) == 0), nil
	}
	switch l.Format {
	case "json":
		server, err := l.serverName()
		return qstat.NewJSON(l.out, l.now(), pbsVersion(), server), err
	case "dsv":
		return qstat.NewDelimited(l.out, l.Delimiter), nil
	}
	return qstat.NewLines(l.out, l.Wide), nil
}

// pbsVersion is the version that clients are told: that of OpenPBS which the commands are like, in its old spelling, by which clients know what they can say,
// and that of Roost.
func pbsVersion() string { return "PBSPro_23.06.06 (" + roostVersion() + ")" }

// roostVersion is that of Roost, with its name before it.
func roostVersion() string { return "roost-" + roost.Version }
