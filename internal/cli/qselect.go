package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func qselectCommand() *command {
	return &command{
		name: "qselect", group: groupPBS, brief: "list the ids of jobs that meet conditions", raw: true, most: -1, do: qselect,
		args:  "[-a [OP]TIME] [-A ACCOUNT] [-c [OP]INTERVAL] [-h HOLDS] [-H] [-J] [-l RESOURCE OP VALUE,…] [-N NAME] [-p [OP]PRIORITY] [-P PROJECT] [-q DESTINATION] [-r y|n] [-s STATES] [-t SUBOPTION[OP]TIME] [-T] [-u USERS] [-x]",
		about: "Prints the ids of the jobs that meet all conditions, one a line; without any, of all jobs that have not ended, of everybody and from the whole pool. OP is .eq., .ne., .gt., .ge., .lt. or .le., and .eq. where none is given. TIME is a date as qsub -a takes it. That nothing meets the conditions is no error.",
		examples: []example{
			{"qselect -u ann -s QW", "Ann's jobs that wait"},
			{"qdel $(qselect -u ann -l walltime.gt.24:00:00)", "delete those that want more than a day"},
			{"qselect -x -t q.ge.202611010000", "what was submitted since the first of November, ended or not"},
		},
		flags: []ucli.Flag{
			short("a", "[OP]TIME", "by the time before which they do not start"),
			short("A", "ACCOUNT", "of this account"),
			short("c", "[OP]INTERVAL", "by how often checkpoints are taken: n, s, c=MINUTES, c or u, from seldom to often"),
			short("h", "HOLDS", "with exactly these holds: letters of u, o and s, or n for none"),
			short("H", "", "only jobs that have ended"),
			short("J", "", "only arrays, and with -T their tasks"),
			short("l", "RESOURCE OP VALUE", "by what they ask for, as in ncpus.ge.4,mem.lt.8gb; also with = != > >= < <="),
			short("N", "NAME", "of this name"),
			short("p", "[OP]PRIORITY", "by their priority"),
			short("P", "PROJECT", "the same as -A"),
			short("q", "DESTINATION", "of a QUEUE, submitted at a @NODE, or both: QUEUE@NODE"),
			short("r", "y|n", "that may be run twice, or may not"),
			short("s", "STATES", "in one of these states: letters of BEFHMQRSTUWX"),
			short("t", "SUBOPTION[OP]TIME", "by a time of theirs: a for -a, c or q submitted, e ready to run, m last changed, s started"),
			short("T", "", "arrays with their tasks"),
			short("u", "USERS", "of these users, with commas between them"),
			short("x", "", "also jobs that have ended"),
		},
	}
}

func qselect(c *call) error {
	if c.asksVersion() {
		return nil
	}
	o, err := getopt(c.args, "a:A:c:h:HJl:N:p:P:q:r:s:t:Tu:x")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if len(o.operands) > 0 {
		return c.pbsUsage("")
	}
	dialect, err := c.dialect()
	if err != nil {
		return c.pbsFail(err)
	}
	wanted := &selecting{call: c, dialect: dialect}
	if refused := wanted.read(o); refused != nil {
		fmt.Fprintf(c.stderr, "qselect: %v\n", refused)
		return exit(refused.code)
	}
	if wanted.at != "" {
		node, ok := c.serverNamed(wanted.at)
		if !ok {
			return c.unknownServer(wanted.at)
		}
		wanted.at = cmp.Or(node, wanted.at)
	}
	l := &pbsList{call: c, Options: qstat.Options{Full: wanted.ads, Subjobs: o.has('T'), Ended: o.has('x') || o.has('H'), OnlyEnded: o.has('H'), Dialect: dialect}}
	if l.torque() {
		l.Elements, l.Living = !o.has('J'), !wanted.completed
		if err := l.look(); err != nil {
			return c.pbsFail(err)
		}
	}
	out := bufio.NewWriter(c.stdout)
	err = l.whole("", wanted.at, func(s *wire.JobStatus) error {
		if wanted.meets(s) {
			fmt.Fprintln(out, pbsName(s.GetId(), s.GetArray()))
		}
		return nil
	})
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return c.pbsFail(err)
	}
	return nil
}

// meets reports whether a job meets all conditions.
func (w *selecting) meets(s *wire.JobStatus) bool {
	j := candidate{JobStatus: s, call: w.call}
	for _, c := range w.conditions {
		if !c(&j) {
			return false
		}
	}
	return true
}

// candidate is a job that is looked at, with what qstat -f says of it.
type candidate struct {
	*wire.JobStatus
	*call
	attributes map[string]string
}

// of is an attribute of qstat -f; empty when the job has none of that name.
func (j *candidate) of(name string) string {
	if j.attributes == nil {
		j.attributes = make(map[string]string)
		for _, a := range j.pbsJob(j.JobStatus).attributes() {
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
