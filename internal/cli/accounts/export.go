package accounts

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// exportFormats are the formats of roost sacct --export.
func exportFormats() []string { return []string{"xdmod", "swf", "csv", "jsonl"} }

// errEnough ends an answer early.
var errEnough = errors.New("enough was read")

// exportAttempts writes attempts in a format for other programs.
func exportAttempts(c *frame.Invocation, q *query.Query, format string) error {
	if !slices.Contains(exportFormats(), format) {
		return frame.UsageErrorf("--export: %q is none of %s", format, strings.Join(exportFormats(), ", "))
	}
	if !c.IsFlagSet("limit") {
		q.Limit = query.MaxLimit
	}
	attempts := attemptRecords(c, q)
	var err error
	switch format {
	case "xdmod":
		err = exportXDMoD(c, attempts)
	case "swf":
		err = exportSWF(c, q, attempts)
	case "csv":
		_, err = export.Attempts().WriteCSV(c.Stdout, attempts)
	case "jsonl":
		_, err = export.Attempts().WriteJSONLines(c.Stdout, attempts)
	}
	return err
}

// attemptRecords are the attempts of an answer as they come. More than an answer can have
// are an error, so that an export is never cut off without a word.
func attemptRecords(c *frame.Invocation, q *query.Query) iter.Seq2[accounting.AttemptRecord, error] {
	return func(yield func(accounting.AttemptRecord, error) bool) {
		n := 0
		err := ask(c, q, func(l *query.AttemptLine) error {
			if n++; !yield(accounting.AttemptRecord{AttemptEntry: l.Attempt, Job: &l.Job}, nil) {
				return errEnough
			}
			return nil
		})
		if err == nil && n == query.MaxLimit {
			err = frame.KindErrorf(roost.Exhausted, "there are %d attempts or more: export shorter ranges of time", n)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(accounting.AttemptRecord{}, err)
		}
	}
}

func exportXDMoD(c *frame.Invocation, attempts iter.Seq2[accounting.AttemptRecord, error]) error {
	p, err := sacct.NewXDMoD(c.Stdout, c.StringFlag("cluster"))
	if err != nil {
		return err
	}
	for a, err := range attempts {
		if err == nil {
			err = p.Print(&a)
		}
		if err != nil {
			return errors.Join(err, p.Close())
		}
	}
	return p.Close()
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
