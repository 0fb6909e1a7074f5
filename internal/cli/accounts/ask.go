package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// askTimeout bounds how long a report may take. A long range of single attempts is read
// at a hundred thousand in a second.
const askTimeout = 10 * time.Minute

// ask asks the accountant and calls each with every line of the answer.
func ask[T any](c *frame.Invocation, q *query.Query, each func(line *T) error) error {
	return Ask(c, q, askTimeout, each)
}

// Ask asks the accountant, for at most a time, and calls each with every line of the
// answer.
func Ask[T any](c *frame.Invocation, q *query.Query, limit time.Duration, each func(line *T) error) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, limit)
	defer cancel()
	stream, err := s.Accounting(ctx, &wire.AccountingQuery{Query: text})
	for err == nil {
		var piece *wire.AccountingPiece
		if piece, err = stream.Recv(); err != nil {
			break
		}
		for line := range bytes.Lines(piece.GetLines()) {
			var v T
			if err := json.Unmarshal(line, &v); err != nil {
				return frame.KindErrorf(roost.Internal, "the answer of the accountant cannot be read: %v", err)
			}
			if err := each(&v); err != nil {
				return err
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return rpc.FromStatus(err)
}

// rangeFlags are the flags for the time of a report, and for whose jobs it is about.
func rangeFlags(since string) []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "since", Value: since,
			Usage: "from when on: a `TIME` ago as in 90m or 30d, or a date as in 2026-03-01"},
		&ucli.StringFlag{Name: "until", Usage: "up to when, in the same form; now by default: `TIME`"},
		&ucli.StringFlag{Name: "month", Usage: "a whole `MONTH` in UTC, as in 2026-03, instead of since and until"},
		&ucli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "jobs of this `USER`"},
		&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "jobs of all users, for administrators"},
		&ucli.StringFlag{Name: "group", Usage: "jobs of this `GROUP` and those below it"},
		&ucli.StringFlag{Name: "project", Usage: "jobs that are charged to this `PROJECT`"},
		&ucli.StringFlag{Name: "queue", Usage: "jobs of this `QUEUE`"},
		&ucli.StringFlag{Name: "band", Usage: "jobs of this `BAND`"},
		&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` lines", Value: query.DefaultLimit},
		frame.JSONFlag(),
		&ucli.BoolFlag{Name: "csv", Usage: "print comma-separated values with a line of headings"},
	}
}

// newQuery makes a question from the flags.
func newQuery(c *frame.Invocation, report string) (*query.Query, error) {
	q := &query.Query{Report: report, Owner: c.StringFlag("user"), Group: c.StringFlag("group"),
		Project: c.StringFlag("project"), Queue: c.StringFlag("queue"), Band: c.StringFlag("band"),
		Limit: c.CountFlag("limit")}
	if q.Limit < 1 || q.Limit > query.MaxLimit {
		return nil, frame.UsageErrorf("--limit: it is a number from 1 to %d", query.MaxLimit)
	}
	if q.Owner == "" && !c.Flag("all") && query.IsOwn(report) {
		q.Owner = query.Self
	}
	if text := c.StringFlag("month"); text != "" {
		month, err := accounting.ParseMonth(text)
		if err != nil {
			return nil, frame.UsageErrorf("--month: %v", err)
		}
		q.From, q.To = month.Start(), month.End()
		return q, nil
	}
	from, err := c.TimeFlag("since", time.Time{})
	if err != nil {
		return nil, err
	}
	to, err := c.TimeFlag("until", c.Now())
	if err != nil {
		return nil, err
	}
	if to.Before(from) {
		return nil, frame.UsageErrorf("--until: it is before --since")
	}
	q.From, q.To = accounting.MillisOf(from), accounting.MillisOf(to)
	return q, nil
}
