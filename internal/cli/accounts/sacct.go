package accounts

import (
	"errors"
	"io"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// SacctCommand returns roost sacct: attempts of jobs in the form of Slurm's sacct.
func SacctCommand() *frame.Command {
	return &frame.Command{
		Name: "sacct", Group: frame.GroupSee, Summary: "attempts of jobs, in the form of Slurm's sacct",
		Synopsis: "[JOB]", MaxOperands: 1, Run: printSacct,
		Description: "Prints a line for each attempt, with Slurm's names of fields and states, from the accounts of " +
			"the pool. Times are UTC. Without a job it lists your attempts that ended within the last day, and then " +
			"those that run.",
		Examples: []frame.Example{
			{Line: "roost sacct 12.host", Description: "all attempts of a job"},
			{Line: "roost sacct --since 7d -n -P --format JobID,State%20,Elapsed", Description: "for a program"},
			{Line: "roost sacct --state RUNNING,PENDING", Description: "what runs and what waits"},
			{Line: "roost sacct --all --since 1d --export xdmod", Description: "a day for Open XDMoD"},
			{Line: "roost sacct --all --month 2026-03 --export pbs --to logs", Description: "a file for each day of " +
				"March"},
		},
		Flags: sacctFlags(),
	}
}

func sacctFlags() []ucli.Flag {
	all := slices.DeleteFunc(rangeFlags("1d"), func(f ucli.Flag) bool {
		return slices.Contains([]string{"limit", "csv"}, f.Names()[0])
	})
	return append(all,
		&ucli.IntFlag{Name: "limit", Usage: "at most `N` lines", Value: query.DefaultLimit},
		&ucli.StringFlag{Name: "state", Aliases: []string{"s"},
			Usage: "only attempts in these `STATES`, with commas between, as RUNNING or R; PENDING lists what waits"},
		&ucli.StringFlag{Name: "format", Aliases: []string{"o"}, Value: sacct.DefaultFormat,
			Usage: "these `FIELDS`, with commas between; a width as in State%20"},
		&ucli.BoolFlag{Name: "helpformat", Aliases: []string{"e"}, Usage: "list the fields"},
		&ucli.BoolFlag{Name: "parsable2", Aliases: []string{"P"}, Usage: "fields with | between, for programs"},
		&ucli.BoolFlag{Name: "parsable", Aliases: []string{"p"}, Usage: "the same, with | at the end of a line"},
		&ucli.StringFlag{Name: "delimiter", Value: "|", Usage: "`TEXT` between fields in place of |"},
		&ucli.BoolFlag{Name: "noheader", Aliases: []string{"n"}, Usage: "no line of headings"},
		&ucli.StringFlag{Name: "export",
			Usage: "write for another program, as xdmod, swf, csv, jsonl, pbs or borg: `FORMAT`"},
		&ucli.StringFlag{Name: "table", Value: "attempts",
			Usage: "of csv and jsonl: write this `TABLE`, as attempts, segments, jobs, usage or machines"},
		&ucli.StringFlag{Name: "to", Usage: "of pbs and borg: write the files into this `DIRECTORY`"},
		&ucli.BoolFlag{Name: "pseudonyms",
			Usage: "of an export: replace names of users, groups, projects and machines, and drop those of jobs"},
		&ucli.StringFlag{Name: "key",
			Usage: "of borg and pseudonyms: hash names with the key in this `FILE`, not with a random one"},
		&ucli.StringFlag{Name: "cluster", Usage: "the `NAME` of the pool", Value: "roost"})
}

func printSacct(c *frame.Invocation) error {
	if c.Flag("helpformat") {
		_, err := io.WriteString(c.Stdout, sacct.FieldList())
		return err
	}
	q, err := newQuery(c, query.Attempts)
	if err != nil {
		return err
	}
	if len(c.Args) > 0 {
		id, err := roost.ParseJobID(c.Args[0], "")
		if err != nil {
			return err
		}
		if id.Host == "" {
			return frame.UsageErrorf("job %s: write its whole id, as in %s.host", c.Args[0], c.Args[0])
		}
		q.Job, q.Host = id.Seq, id.Host
	}
	if format := c.StringFlag("export"); format != "" {
		if c.IsFlagSet("state") {
			return frame.UsageErrorf("--state: an export has all attempts that ended")
		}
		return exportAttempts(c, q, format)
	}
	states, err := sacct.ParseStates(c.StringFlag("state"))
	if err != nil {
		return frame.UsageErrorf("--state: %v", err)
	}
	p, err := sacctPrinter(c)
	if err != nil {
		return err
	}
	return errors.Join(printAttempts(c, q, states, p), p.Close())
}

// printAttempts prints the attempts in some states, and at most as many as are wanted.
func printAttempts(c *frame.Invocation, q *query.Query, states sacct.StateSet, p sacct.Printer) error {
	left := q.Limit
	if q.Live = query.LiveToo; len(states) > 0 {
		if q.Limit, q.Waiting = query.MaxLimit, states["PENDING"]; !states.HasEnd() {
			q.Live = query.LiveOnly
		} else if !states.HasLive() {
			q.Live = ""
		}
	}
	for a, err := range attemptRecords(c, q) {
		if err != nil {
			return err
		}
		if len(states) > 0 && !states[sacct.State(&a)] {
			continue
		}
		if left--; left < 0 {
			break
		}
		if err := p.Print(&a); err != nil {
			return err
		}
	}
	return nil
}

// sacctPrinter returns the printer that the flags ask for.
func sacctPrinter(c *frame.Invocation) (sacct.Printer, error) {
	options := sacct.Options{Cluster: c.StringFlag("cluster"), Location: time.UTC}
	if c.WantsJSON() {
		return sacct.NewJSON(c.Stdout, options), nil
	}
	columns, err := sacct.ParseFormat(c.StringFlag("format"))
	if err != nil {
		return nil, err
	}
	head := !c.Flag("noheader")
	if c.Flag("parsable") || c.Flag("parsable2") {
		return sacct.NewLines(c.Stdout, columns, options, head, c.StringFlag("delimiter"), !c.Flag("parsable2"))
	}
	return sacct.NewTable(c.Stdout, columns, options, head), nil
}
