package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// runBranch runs the subcommand of the first operand; without one it lists.
func runBranch(branches func() []frame.Subcommand) func(c *frame.Invocation) error {
	return func(c *frame.Invocation) error {
		if len(c.Args) == 0 {
			c.Args = []string{"list"}
		}
		return c.RunSubcommand(branches())
	}
}

// change has the accountant make a change. It returns the document of what was made.
func change(c *frame.Invocation, ch *query.Change) ([]byte, error) {
	text, err := json.Marshal(ch)
	if err != nil {
		return nil, err
	}
	s, err := c.ConnectSchedd()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context, time.Minute)
	defer cancel()
	result, err := s.ChangeAccounts(ctx, &scheddapi.AccountingChange{Change: text})
	return result.GetDocument(), rpc.FromStatus(err)
}

// makeChange makes a change, and prints what was made: a line, or its document.
func makeChange(c *frame.Invocation, ch *query.Change, name, text string) error {
	made, err := change(c, ch)
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{name: json.RawMessage(made)})
	}
	fmt.Fprintln(c.Stdout, text)
	return nil
}

// askAll asks the accountant and returns all lines of the answer.
func askAll[T any](c *frame.Invocation, q *query.Query) ([]T, error) {
	lines := []T{}
	err := ask(c, q, func(l *T) error { lines = append(lines, *l); return nil })
	return lines, err
}

// printTable prints lines as JSON under a name, or as a table.
func printTable[T any](c *frame.Invocation, name, none string, columns []column[T], lines []T) error {
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{name: lines})
	}
	if len(lines) == 0 {
		fmt.Fprintln(c.Stderr, none)
		return nil
	}
	tableOf(columns, lines).Print(c.Stdout, c.OutScreen)
	return nil
}

// payerFlags are the flags that say who pays.
func payerFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "project", Usage: "what is charged to this `PROJECT`"},
		&ucli.StringFlag{Name: "group", Usage: "what is charged to this `GROUP`"},
		&ucli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "what is charged to this `USER`"},
	}
}

// payerNames are their names.
func payerNames(more ...string) []string {
	return append([]string{"project", "group", "user"}, more...)
}

// payerOf reads these flags; nil: none is set.
func payerOf(c *frame.Invocation) (*query.Payer, error) {
	p := query.Payer{Project: c.StringFlag("project"), Group: c.StringFlag("group"), User: c.StringFlag("user")}
	if p == (query.Payer{}) {
		return nil, nil
	}
	if p.Check() != nil {
		return nil, frame.UsageErrorf("name one of --project, --group and --user")
	}
	return &p, nil
}

// requirePayer is payerOf for what needs one.
func requirePayer(c *frame.Invocation) (query.Payer, error) {
	p, err := payerOf(c)
	if err == nil && p == nil {
		err = frame.UsageErrorf("say who pays: --project, --group or --user")
	}
	if err != nil {
		return query.Payer{}, err
	}
	return *p, nil
}

// monthFlag reads a month, which is otherwise if the flag is not set.
func monthFlag(c *frame.Invocation, flag string, otherwise accounting.Month) (accounting.Month, error) {
	text := c.StringFlag(flag)
	if text == "" {
		return otherwise, nil
	}
	m, err := accounting.ParseMonth(text)
	if err != nil {
		return 0, frame.UsageErrorf("--%s: %v", flag, err)
	}
	return m, nil
}

func thisMonth(c *frame.Invocation) accounting.Month {
	return accounting.MonthOf(accounting.MillisOf(c.Now()))
}

// unitsFlag reads an amount; 0: the flag is not set.
func unitsFlag(c *frame.Invocation, flag string) (query.Units, error) {
	if !c.IsFlagSet(flag) {
		return 0, nil
	}
	amount, err := accounting.ParseMicroUnits(c.StringFlag(flag))
	if err != nil {
		return 0, frame.UsageErrorf("--%s: %v", flag, err)
	}
	return query.Units(amount), nil
}

// day writes a time as its date.
func day(t query.Time) string {
	if t == 0 {
		return ""
	}
	return accounting.Millis(t).Time().Format("2006-01-02")
}

func yes(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

func printable(text string) string { return document.PrintableText(text) }
