package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

func classadCommand() *command {
	return &command{
		name: "classad", signedOperands: isExpression, group: groupMore,
		summary: "evaluate, match, check and format ClassAds", synopsis: "eval|match|parse|fmt …", maxOperands: -1,
		branches: classadSubcommands, run: doClassad,
		description: "Works with the language in which machines and jobs describe themselves, without a pool. " +
			"classad(7) teaches the language.\n\n" +
			"  eval EXPR          prints the value of an expression\n" +
			"  eval --batch FILE  prints a value for each line of context, tab, expression\n" +
			"  match LEFT RIGHT   says whether the ads of two files match, and if not, why\n" +
			"  parse FILE…        prints each ad on one line, and every mistake with its place\n" +
			"  fmt FILE…          formats ads or an expression for people\n\n" +
			"A file holds ads in new syntax, as in [ a = 1 ], in old syntax, an attribute a line, or in JSON. - is " +
			"standard input.",
		examples: []commandExample{
			{"roost classad eval --ad machine.ad 'Memory / Cpus'", "evaluate an expression in an ad"},
			{"roost classad match job.ad machine.ad", "why does this machine not take this job?"},
			{"roost classad parse --json machines.ad", "check ads, and rewrite them as JSON"},
			{"roost classad fmt -w policy.ad", "format a file in place"},
		},
		flags: []ucli.Flag{
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
	var unknown *unknownFlagError
	return len(operands) == 1 && operands[0] == "eval" && errors.As(err, &unknown)
}

// classadSubcommands are what roost classad does.
func classadSubcommands() []subcommand {
	return []subcommand{
		{"eval", "print the value of an expression", []string{"ad", "target", "batch"}, 0, 1, "an expression",
			evalClassad},
		{"match", "say whether two ads match, and why not", []string{"json"}, 2, 2, "two files, each with an ad",
			matchClassads},
		{"parse", "check ads, and print them in another syntax", []string{"old", "json"}, 0, -1, "", parseClassads},
		{"fmt", "format ads for people", []string{"write", "check"}, 0, -1, "", formatClassads},
	}
}

func doClassad(c *invocation) error { return c.runSubcommand(classadSubcommands()) }

// evalEnv is the world as expressions see it.
func (c *invocation) evalEnv() *classad.EvalEnv {
	return &classad.EvalEnv{Now: c.now(), Random: rand.Float64}
}

// evalClassad prints the value of one expression.
func evalClassad(c *invocation, args []string) error {
	if c.flag("batch") {
		return c.evalBatch(args)
	}
	if len(args) == 0 {
		return withHint(usageErrorf("an expression is missing"),
			`as in: roost classad eval '1 + 1'; one that begins with -- stands behind another --`)
	}
	e, err := classad.ParseExpr(args[0])
	if err != nil {
		(&diagnostics{invocation: c}).showProblem(sourceText{"the expression", args[0]}, 0, err)
		return exitError(roost.Usage.ExitCode())
	}
	if c.stringFlag("ad") == "-" && c.stringFlag("target") == "-" {
		return withHint(usageErrorf("--ad and --target cannot both be standard input"),
			"give the name of a file for one of them")
	}
	my, err := c.adOfFlag("ad")
	if err != nil {
		return err
	}
	target, err := c.adOfFlag("target")
	if err != nil {
		return err
	}
	v := classad.Eval(e, my, target, c.evalEnv())
	if _, err = fmt.Fprintln(c.stdout, v); err == nil && v.Reason() != "" {
		fmt.Fprintf(c.stderr, "(%s)\n", printableText(v.Reason()))
	}
	return err
}

// adOfFlag is the ad of the file that a flag names, nil without the flag.
func (c *invocation) adOfFlag(flag string) (*classad.Ad, error) {
	if !c.isFlagSet(flag) {
		return nil, nil
	}
	return c.readAd(c.stringFlag(flag))
}
