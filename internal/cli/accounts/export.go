package accounts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/progressbar"
)

// exportFormats are the formats of roost sacct --export.
func exportFormats() []string { return []string{"xdmod", "swf", "csv", "jsonl", "pbs", "borg"} }

// errEnough ends an answer early.
var errEnough = errors.New("enough was read")

// exportAttempts writes attempts in a format for other programs.
func exportAttempts(c *frame.Invocation, q *query.Query, format string) error {
	if !slices.Contains(exportFormats(), format) {
		return frame.UsageErrorf("--export: %q is none of %s", format, strings.Join(exportFormats(), ", "))
	}
	if c.IsFlagSet("to") != (format == "pbs" || format == "borg") {
		return frame.UsageErrorf("--export pbs and borg need --to DIRECTORY, and the others write to standard output")
	}
	if c.IsFlagSet("key") && format != "borg" && !c.Flag("pseudonyms") {
		return frame.UsageErrorf("--key is for --export borg, and for --pseudonyms")
	}
	if c.Flag("pseudonyms") && (format == "borg" || c.IsFlagSet("table") && c.StringFlag("table") == "usage") {
		return frame.UsageErrorf("--pseudonyms: --export borg has them anyway, and the table usage has no names")
	}
	if c.IsFlagSet("table") && format != "csv" && format != "jsonl" {
		return frame.UsageErrorf("--table is for --export csv and jsonl")
	}
	if !c.IsFlagSet("limit") {
		q.Limit = query.MaxLimit
	}
	names, err := exportPseudonyms(c)
	if err != nil {
		return err
	}
	meter := newExportMeter(c, q, format)
	attempts := names.Attempts(measured(attemptRecords(c, q), meter))
	switch format {
	case "xdmod":
		err = sacct.WriteXDMoD(c.Stdout, c.StringFlag("cluster"), attempts)
	case "swf":
		err = exportSWF(c, q, attempts)
	case "csv", "jsonl":
		err = exportTable(c, q, format, attempts, names)
	case "pbs":
		err = exportPBS(c, q, meter, names)
	case "borg":
		err = exportBorg(c, q, meter)
	}
	meter.End(err == nil)
	return err
}

// measured counts the values of a sequence as they pass.
func measured[T any](all iter.Seq2[T, error], meter *progressbar.WorkMeter) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			meter.Add(1)
			if !yield(v, err) {
				return
			}
		}
	}
}

// newExportMeter returns the meter of an export; nil where nobody sees it, or where it
// would stand between the lines. How much it will be is asked of the sums by hour, which
// are read in no time. The jobs that an export of PBS writes, too, are not in them.
func newExportMeter(c *frame.Invocation, q *query.Query, format string) *progressbar.WorkMeter {
	if !c.ErrScreen.Terminal || c.OutScreen.Terminal && !c.IsFlagSet("to") {
		return nil
	}
	sums, n := *q, int64(0)
	sums.Report, sums.By, sums.Limit = query.Usage, nil, 1
	if q.Job == 0 {
		err := ask(c, &sums, func(l *query.UsageLine) error {
			if n += l.Ended; format == "pbs" {
				n += l.Started
			}
			return nil
		})
		if err != nil {
			n = 0 // the export itself says what is wrong
		}
	}
	return progressbar.NewWorkMeter(c, "export", n, progressbar.Count)
}

// attemptRecords are the attempts of an answer as they come. Why attempts that run are
// missing goes to standard error.
func attemptRecords(c *frame.Invocation, q *query.Query) iter.Seq2[accounting.AttemptRecord, error] {
	lines := answerLines(c, q, "attempts", func(l *query.AttemptLine) query.AttemptLine { return *l })
	return func(yield func(accounting.AttemptRecord, error) bool) {
		for l, err := range lines {
			if l.Missing != "" {
				fmt.Fprintln(c.Stderr, l.Missing)
				continue
			}
			if !yield(accounting.AttemptRecord{AttemptEntry: l.Attempt, Job: &l.Job}, err) {
				return
			}
		}
	}
}

// exportPBS writes an accounting log of PBS for each day into a directory. The names of
// the files are dates, and none of them is one that was there.
func exportPBS(c *frame.Invocation, q *query.Query, meter *progressbar.WorkMeter, names *export.Pseudonyms) error {
	if q.Job != 0 {
		return frame.UsageErrorf("--export pbs is of a time, not of a job")
	}
	dir, err := os.OpenRoot(c.StringFlag("to"))
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "--to: %v", err)
	}
	defer dir.Close()
	started, jobs := *q, *q
	started.Time, jobs.Report = query.ByStart, query.Jobs
	records := export.PBSRecords{Jobs: names.Jobs(measured(jobRecords(c, &jobs), meter)),
		Started: names.Attempts(measured(attemptRecords(c, &started), meter)),
		Ended:   names.Attempts(measured(attemptRecords(c, q), meter))}
	n, err := export.WritePBSDays(func(name string) (io.WriteCloser, error) {
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return nil, frame.WithHint(frame.KindErrorf(roost.NoOutput, "%v", err), "write into an empty directory")
		}
		return f, nil
	}, records, time.UTC)
	if err == nil {
		fmt.Fprintf(c.Stderr, "%d records are written\n", n)
	}
	return err
}

// jobRecords are the jobs of an answer as they come.
func jobRecords(c *frame.Invocation, q *query.Query) iter.Seq2[accounting.JobEntry, error] {
	return answerLines(c, q, "jobs", func(l *accounting.JobEntry) accounting.JobEntry { return *l })
}

// exportSWF writes the attempts in the order of submission, which the format wants.
func exportSWF(c *frame.Invocation, q *query.Query, attempts iter.Seq2[accounting.AttemptRecord, error]) error {
	var all []accounting.AttemptRecord
	for a, err := range attempts {
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b accounting.AttemptRecord) int {
		return cmp.Or(cmp.Compare(a.Job.Submitted, b.Job.Submitted), cmp.Compare(a.Job.Host, b.Job.Host),
			cmp.Compare(a.Job.Seq, b.Job.Seq), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Attempt, b.Attempt))
	})
	window := accounting.TimeRange{From: q.From, To: q.To}
	if len(all) > 0 {
		window.From = min(window.From, all[0].Job.Submitted)
	}
	_, err := export.WriteSWF(c.Stdout, func(yield func(accounting.AttemptRecord, error) bool) {
		for _, a := range all {
			if !yield(a, nil) {
				return
			}
		}
	}, export.SWFOptions{Computer: c.StringFlag("cluster"), Window: window})
	return err
}
