package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/spell"
)

func classadCommand() *command {
	return &command{
		name: "classad", signed: isExpression, group: groupMore, brief: "evaluate, match, check and format ClassAds", args: "eval|match|parse|fmt …", most: -1, do: doClassad,
		about: "Works with the language in which machines and jobs describe themselves, without a pool. classad(7) teaches the language.\n\n" +
			"  eval EXPR          prints the value of an expression\n" +
			"  eval --batch FILE  prints a value for each line of context, tab, expression\n" +
			"  match LEFT RIGHT   says whether the ads of two files match, and if not, why\n" +
			"  parse FILE…        prints each ad on one line, and every mistake with its place\n" +
			"  fmt FILE…          formats ads or an expression for people\n\n" +
			"A file holds ads in new syntax, as in [ a = 1 ], in old syntax, an attribute a line, or in JSON. - is standard input.",
		examples: []example{
			{"roost classad eval --ad machine.ad 'Memory / Cpus'", "evaluate an expression in an ad"},
			{"roost classad match job.ad machine.ad", "why does this machine not take this job?"},
			{"roost classad parse --json machines.ad", "check ads, and rewrite them as JSON"},
			{"roost classad fmt -w policy.ad", "format a file in place"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "ad", Usage: "eval: look names up in the ad of `FILE`"},
			&ucli.StringFlag{Name: "target", Usage: "eval: the ad of `FILE` is the other side, TARGET"},
			&ucli.BoolFlag{Name: "batch", Usage: "eval: read lines of context, tab, expression, and print a line for each"},
			&ucli.BoolFlag{Name: "old", Usage: "parse: print old syntax, an attribute a line"},
			&ucli.BoolFlag{Name: "json", Usage: "match, parse: print JSON"},
			&ucli.BoolFlag{Name: "write", Aliases: []string{"w"}, Usage: "fmt: rewrite the files instead of printing them"},
			&ucli.BoolFlag{Name: "check", Usage: "fmt: name the files that are not formatted; the exit status is 1 if there are any"},
		},
	}
}

// isExpression says whether an argument that begins with a sign is what eval is to evaluate.
func isExpression(operands []string, err error) bool {
	var unknown *unknownFlag
	return len(operands) == 1 && operands[0] == "eval" && errors.As(err, &unknown)
}

// classadVerb is something that roost classad does.
type classadVerb struct {
	name, brief string
	flags       []string // that it takes of those above
	least, most int      // operands
	wants       string
	do          func(c *call, args []string) error
}

func classadVerbs() []classadVerb {
	return []classadVerb{
		{"eval", "print the value of an expression", []string{"ad", "target", "batch"}, 0, 1, "an expression", evalClassad},
		{"match", "say whether two ads match, and why not", []string{"json"}, 2, 2, "two files, each with an ad", matchClassads},
		{"parse", "check ads, and print them in another syntax", []string{"old", "json"}, 0, -1, "", parseClassads},
		{"fmt", "format ads for people", []string{"write", "check"}, 0, -1, "", formatClassads},
	}
}

func classadWords() (list []suggestion) {
	for _, v := range classadVerbs() {
		list = append(list, suggestion{v.name, v.brief})
	}
	return list
}

func doClassad(c *call) error {
	if len(c.args) == 0 {
		c.help(c.stdout, c.cmd)
		return nil
	}
	var names []string
	for _, v := range classadVerbs() {
		if v.name == c.args[0] {
			if err := c.suits(v); err != nil {
				return err
			}
			return v.do(c, c.args[1:])
		}
		names = append(names, v.name)
	}
	cure := "it is one of " + strings.Join(names, ", ") + "; see: roost classad --help"
	if n := spell.Nearest(shorten(c.args[0], 32), names); n != "" {
		cure = "did you mean: roost classad " + n
	}
	return advise(usage("unknown command %q", c.args[0]), cure)
}

// suits says whether the command line fits the verb.
func (c *call) suits(v classadVerb) error {
	for _, other := range classadVerbs() {
		for _, f := range other.flags {
			if c.given(f) && !slices.Contains(v.flags, f) {
				return advise(usage("--%s has no meaning for roost classad %s", f, v.name), cureUsage(c.cmd, nil))
			}
		}
	}
	switch n := len(c.args) - 1; {
	case n < v.least:
		return advise(usage("%s needs %s", v.name, v.wants), cureUsage(c.cmd, nil))
	case v.most >= 0 && n > v.most:
		return advise(usage("there is one argument too many: %q", c.args[v.most+1]), cureUsage(c.cmd, nil))
	}
	return nil
}

// classadEnv is the world as expressions see it.
func (c *call) classadEnv() *classad.Env {
	return &classad.Env{Now: c.now(), Random: rand.Float64}
}

// evalClassad prints the value of one expression.
func evalClassad(c *call, args []string) error {
	if c.flag("batch") {
		return c.evalBatch(args)
	}
	if len(args) == 0 {
		return advise(usage("an expression is missing"), `as in: roost classad eval '1 + 1'; one that begins with -- stands behind another --`)
	}
	e, err := classad.ParseExpr(args[0])
	if err != nil {
		(&mistakes{call: c}).show(source{"the expression", args[0]}, 0, err)
		return exit(roost.Usage.ExitCode())
	}
	if c.text("ad") == "-" && c.text("target") == "-" {
		return advise(usage("--ad and --target cannot both be standard input"), "give the name of a file for one of them")
	}
	my, err := c.flagAd("ad")
	if err != nil {
		return err
	}
	target, err := c.flagAd("target")
	if err != nil {
		return err
	}
	v := classad.Eval(e, my, target, c.classadEnv())
	if _, err = fmt.Fprintln(c.stdout, v); err == nil && v.Reason() != "" {
		fmt.Fprintf(c.stderr, "(%s)\n", printable(v.Reason()))
	}
	return err
}

// flagAd is the ad of the file that a flag names, nil without the flag.
func (c *call) flagAd(flag string) (*classad.Ad, error) {
	if !c.given(flag) {
		return nil, nil
	}
	return c.oneAd(c.text(flag))
}
