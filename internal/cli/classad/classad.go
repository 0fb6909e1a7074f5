package classad

import (
	"errors"
	"fmt"
	"math/rand/v2"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// Command returns roost classad: evaluate, match, check and format ClassAds.
func Command() *frame.Command {
	return &frame.Command{
		Name: "classad", SignedOperands: isExpression, Group: frame.GroupMore,
		Summary: "evaluate, match, check and format ClassAds", Synopsis: "eval|match|parse|fmt …", MaxOperands: -1,
		Branches: subcommands, Run: doClassad,
		Description: "Works with the language in which machines and jobs describe themselves, without a pool. " +
			"classad(7) teaches the language.\n\n" +
			"  eval EXPR          prints the value of an expression\n" +
			"  eval --batch FILE  prints a value for each line of context, tab, expression\n" +
			"  match LEFT RIGHT   says whether the ads of two files match, and if not, why\n" +
			"  parse FILE…        prints each ad on one line, and every mistake with its place\n" +
			"  fmt FILE…          formats ads or an expression for people\n\n" +
			"A file holds ads in new syntax, as in [ a = 1 ], in old syntax, an attribute a line, or in JSON. - is " +
			"standard input.",
		Examples: []frame.Example{
			{Line: "roost classad eval --ad machine.ad 'Memory / Cpus'",
				Description: "evaluate an expression in an ad"},
			{Line: "roost classad match job.ad machine.ad", Description: "why does this machine not take this job?"},
			{Line: "roost classad parse --json machines.ad", Description: "check ads, and rewrite them as JSON"},
			{Line: "roost classad fmt -w policy.ad", Description: "format a file in place"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "ad", Usage: "eval: look names up in the ad of `FILE`"},
			&ucli.StringFlag{Name: "target", Usage: "eval: the ad of `FILE` is the other side, TARGET"},
			&ucli.BoolFlag{Name: "batch",
				Usage: "eval: read lines of context, tab, expression, and print a line for each"},
			&ucli.BoolFlag{Name: "old", Usage: "parse: print old syntax, an attribute a line"},
			&ucli.BoolFlag{Name: "json", Usage: "match, parse: print JSON"},
			&ucli.BoolFlag{Name: "write", Aliases: []string{"w"},
				Usage: "fmt: rewrite the files instead of printing them"},
			&ucli.BoolFlag{Name: "check",
				Usage: "fmt: name the files that are not formatted; the exit status is 1 if there are any"},
		},
	}
}

// isExpression says whether an argument that begins with a sign is what eval is to
// evaluate.
func isExpression(operands []string, err error) bool {
	var unknown *frame.UnknownFlagError
	return len(operands) == 1 && operands[0] == "eval" && errors.As(err, &unknown)
}

// subcommands are what roost classad does.
func subcommands() []frame.Subcommand {
	return []frame.Subcommand{
		{Name: "eval", Summary: "print the value of an expression", Flags: []string{"ad", "target", "batch"},
			MinOperands: 0, MaxOperands: 1, OperandNames: "an expression",
			Run: evalClassad},
		{Name: "match", Summary: "say whether two ads match, and why not", Flags: []string{"json"}, MinOperands: 2,
			MaxOperands: 2, OperandNames: "two files, each with an ad",
			Run: matchClassads},
		{Name: "parse", Summary: "check ads, and print them in another syntax", Flags: []string{"old", "json"},
			MinOperands: 0, MaxOperands: -1, OperandNames: "", Run: parseClassads},
		{Name: "fmt", Summary: "format ads for people", Flags: []string{"write", "check"}, MinOperands: 0,
			MaxOperands: -1, OperandNames: "", Run: formatClassads},
	}
}

func doClassad(c *frame.Invocation) error { return c.RunSubcommand(subcommands()) }

// evalEnv is the world as expressions see it.
func evalEnv(c *frame.Invocation) *classad.EvalEnv {
	return &classad.EvalEnv{Now: c.Now(), Random: rand.Float64}
}

// evalClassad prints the value of one expression.
func evalClassad(c *frame.Invocation, args []string) error {
	if c.Flag("batch") {
		return evalBatch(c, args)
	}
	if len(args) == 0 {
		return frame.WithHint(frame.UsageErrorf("an expression is missing"),
			`as in: roost classad eval '1 + 1'; one that begins with -- stands behind another --`)
	}
	e, err := classad.ParseExpr(args[0])
	if err != nil {
		(&diagnostics{Invocation: c}).showProblem(sourceText{"the expression", args[0]}, 0, err)
		return frame.ExitError(roost.Usage.ExitCode())
	}
	if c.StringFlag("ad") == "-" && c.StringFlag("target") == "-" {
		return frame.WithHint(frame.UsageErrorf("--ad and --target cannot both be standard input"),
			"give the name of a file for one of them")
	}
	my, err := adOfFlag(c, "ad")
	if err != nil {
		return err
	}
	target, err := adOfFlag(c, "target")
	if err != nil {
		return err
	}
	v := classad.Eval(e, my, target, evalEnv(c))
	if _, err = fmt.Fprintln(c.Stdout, v); err == nil && v.Reason() != "" {
		fmt.Fprintf(c.Stderr, "(%s)\n", document.PrintableText(v.Reason()))
	}
	return err
}

// adOfFlag is the ad of the file that a flag names, nil without the flag.
func adOfFlag(c *frame.Invocation, flag string) (*classad.Ad, error) {
	if !c.IsFlagSet(flag) {
		return nil, nil
	}
	return readAd(c, c.StringFlag(flag))
}
