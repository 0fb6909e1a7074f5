package flows

import (
	"fmt"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// MakeCommand returns roost make: run the recipes of a makefile as a flow.
func MakeCommand() *frame.Command {
	return &frame.Command{
		Name: "make", Group: frame.GroupRun, Summary: "run the recipes of a makefile on the pool",
		Synopsis: "[NAME=VALUE…] [TARGET…]", MaxOperands: -1, Run: runMake,
		Description: "Finds out by GNU make which targets are out of date, and runs their recipes as tasks of a " +
			"flow, in the order of their prerequisites. Each recipe runs by make in the makefile's directory, which " +
			"the machines have to share. Variables of targets say what a recipe needs: ROOST_CPUS, ROOST_MEMORY, " +
			"ROOST_GPUS, ROOST_DISK and ROOST_WALLTIME; the options with these names are for the others. It waits, " +
			"prints what each recipe prints, and ends as make does: 0, or 2 for an error.",
		Examples: []frame.Example{
			{Line: "roost make", Description: "make the first target of the makefile"},
			{Line: "roost make -j 100 -k --memory 2G all", Description: "no more than 100 recipes at a time, " +
				"and go on where one fails"},
			{Line: "roost make -n all", Description: "which recipes would run, with what they need and wait for"},
		},
		Flags: append(makeFlags(),
			&ucli.BoolFlag{Name: "just-print", Aliases: []string{"n"}, Usage: "print which recipes would run, and " +
				"submit nothing"},
			&ucli.UintFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "no more than `N` recipes at a time; " +
				"otherwise any number"},
			&ucli.StringFlag{Name: "cpus", Usage: "`CORES` of a recipe", Value: "1"},
			&ucli.StringFlag{Name: "memory", Usage: "`MEMORY` of a recipe, as in 2G",
				Value: roost.DefaultMemory.String()},
			&ucli.StringFlag{Name: "gpus", Usage: "`GPUS` of a recipe"},
			&ucli.StringFlag{Name: "disk", Usage: "`DISK` of a recipe, as in 10G"},
			&ucli.StringFlag{Name: "walltime", Usage: "the longest `TIME` that a recipe may run, as in 1h30m"},
			&ucli.StringFlag{Name: "name", Usage: "the flow's `NAME` in lists; otherwise make and the targets"},
			&ucli.BoolFlag{Name: "detach", Usage: "print the flow's id and do not wait"}),
	}
}

// makeFlag is an option of make itself.
type makeFlag struct {
	name, letter, usage string
	argument            string // empty: it has none
}

// makeOptions are the options of make that roost make passes on.
func makeOptions() []makeFlag {
	return []makeFlag{
		{"file", "f", "read this makefile; may be repeated", "FILE"},
		{"include-dir", "I", "look for included makefiles in this directory; may be repeated", "DIR"},
		{"old-file", "o", "take this file as old, and do not remake it; may be repeated", "FILE"},
		{"what-if", "W", "take this file as new; may be repeated", "FILE"},
		{"keep-going", "k", "go on with what does not depend on a recipe that failed", ""},
		{"always-make", "B", "make all targets", ""},
		{"ignore-errors", "i", "ignore errors of recipes", ""},
		{"silent", "s", "do not print recipes as they run", ""},
		{"no-builtin-rules", "r", "without the rules that make has itself", ""},
		{"no-builtin-variables", "R", "without the variables that make has itself", ""},
		{"environment-overrides", "e", "the environment overrides variables of the makefile", ""},
	}
}

func makeFlags() (list []ucli.Flag) {
	for _, f := range makeOptions() {
		switch f.argument {
		case "":
			list = append(list, &ucli.BoolFlag{Name: f.name, Aliases: []string{f.letter}, Usage: f.usage})
		default:
			usage := strings.Replace(f.usage, "this ", "this `"+f.argument+"` ", 1)
			list = append(list, &ucli.StringSliceFlag{Name: f.name, Aliases: []string{f.letter}, Usage: usage})
		}
	}
	return append(list, &ucli.StringFlag{Name: "directory", Aliases: []string{"C"},
		Usage: "change to this `DIR` before anything else"})
}

// makeExit is the exit status of make for errors.
const makeExit = 2

// makeLine is the command line of roost make.
type makeLine struct {
	directory string   // absolute
	flags     []string // of make
	variables []string // NAME=VALUE
	goals     []string
	keepsOn   bool
}

// parseMakeLine reads the command line.
func parseMakeLine(c *frame.Invocation) (makeLine, error) {
	opts, err := c.SubmitOptions()
	l := makeLine{directory: opts.Dir, keepsOn: c.Flag("keep-going")}
	if err != nil {
		return l, err
	}
	if name := c.StringFlag("directory"); name != "" {
		l.directory = filepath.Join(l.directory, name)
		if filepath.IsAbs(name) {
			l.directory = filepath.Clean(name)
		}
	}
	for _, f := range makeOptions() {
		switch {
		case f.argument != "":
			for _, value := range c.StringsFlag(f.name) {
				l.flags = append(l.flags, "-"+f.letter+value)
			}
		case c.Flag(f.name):
			l.flags = append(l.flags, "-"+f.letter)
		}
	}
	for _, word := range c.Args {
		if i := strings.IndexByte(word, '='); i > 0 {
			l.variables = append(l.variables, word)
		} else {
			l.goals = append(l.goals, word)
		}
	}
	return l, nil
}

func runMake(c *frame.Invocation) error {
	l, err := parseMakeLine(c)
	if err != nil {
		return err
	}
	d, err := readMakefile(c, l)
	if err != nil {
		return err
	}
	recipes, err := makeRecipes(c, d.Database, l)
	if err != nil {
		return err
	}
	for _, text := range d.Messages {
		fmt.Fprintln(c.Stdout, text)
	}
	if c.Flag("just-print") || len(recipes) == 0 {
		for _, r := range recipes {
			fmt.Fprintln(c.Stdout, r)
		}
		return d.exit()
	}
	id, err := submitRecipes(c, d.Database, recipes, l)
	if err != nil {
		return err
	}
	if c.Flag("detach") {
		fmt.Fprintln(c.Stdout, id)
		return d.exit()
	}
	fmt.Fprintln(c.Stderr, c.ErrScreen.ColourText(frame.Dim, fmt.Sprintf("roost make: %s has %s", id,
		document.Plural(len(recipes), "recipe"))))
	if err := awaitRecipes(c, id); err != nil {
		return err
	}
	return d.exit()
}
