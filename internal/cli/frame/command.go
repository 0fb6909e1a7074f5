package frame

import (
	"slices"

	ucli "github.com/urfave/cli/v2"
)

// Command is an entry of the table of commands: its name, flags and help, and what it
// does.
type Command struct {
	Name        string
	Aliases     []string
	Group       string
	Summary     string // a few words, without a full stop
	Synopsis    string // as in "FILE" or "JOB…"
	Description string // sentences for the help
	Examples    []Example
	Flags       []ucli.Flag
	MinOperands int    // how many operands it needs
	MaxOperands int    // how many it takes; -1 for any number
	OperandName string // what the first operand is, for messages
	FlagsFirst  bool   // flags end at the first operand
	RawArgs     bool   // it parses its own arguments; Flags are for the help and the manual
	Hidden      bool   // the help does not list it
	// the program beside this one that runs the command and has its flags and help;
	// empty: this program
	Program string
	// the program that the link of a PBS command's name leads to; empty: roost
	LinkProgram string

	// SignedOperands reports whether a word that begins with - is an operand; err is why
	// it is no flag. Nil: it never is.
	SignedOperands func(operands []string, err error) bool
	// Branches are the subcommands that the completion offers; nil: there are none.
	Branches func() []Subcommand
	Prepare  func(c *Invocation) error // runs before Run; nil: nothing does
	Run      func(c *Invocation) error
}

// IsLink reports whether the command is one of another batch system. People call it by
// its own name: a link of that name leads to a program of Roost.
func (c *Command) IsLink() bool {
	return c.Group == GroupPBS || c.Group == GroupCondor || c.Group == GroupSlurm
}

// SlurmPrefix begins the name of a command of Slurm whose own name is that of a command
// of Roost. A link of its own name leads to it.
const SlurmPrefix = "slurm_"

// Example is a command line for the help, and what it does.
type Example struct{ Line, Description string }

// The groups of commands, in the order in which the help shows them.
const (
	GroupRun    = "Run work"
	GroupSee    = "See what happens"
	GroupChange = "Change what happens"
	GroupOwner  = "Your machine"
	GroupPool   = "The pool"
	GroupAdmin  = "Administer the pool"
	GroupPBS    = "PBS commands"
	GroupCondor = "HTCondor commands"
	GroupSlurm  = "Slurm commands"
	GroupMore   = "More"
)

func commandGroups() []string {
	return []string{GroupRun, GroupSee, GroupChange, GroupOwner, GroupPool, GroupAdmin, GroupPBS,
		GroupCondor, GroupSlurm, GroupMore}
}

// JSONFlag is the flag --json.
func JSONFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "json", Usage: "print JSON for programs; roost-json(7) describes it"}
}

// FindCommand returns the command of that name or alias; nil where there is none.
func FindCommand(all []*Command, name string) *Command {
	for _, c := range all {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			return c
		}
	}
	return nil
}

// CommandEntry is a command of the table that is made when it is needed. To make all of
// them for one that is run would double the time until it runs.
type CommandEntry struct {
	Names []string // its name and its aliases
	Make  func() *Command
}

// Entry returns the entry of a command with its aliases.
func Entry(name string, construct func() *Command, aliases ...string) CommandEntry {
	return CommandEntry{append([]string{name}, aliases...), construct}
}

// FindEntry makes the command of that name or alias; nil where there is none.
func FindEntry(all []CommandEntry, name string) *Command {
	for _, e := range all {
		if slices.Contains(e.Names, name) {
			return e.Make()
		}
	}
	return nil
}

// MakeCommands makes all commands of a table.
func MakeCommands(all []CommandEntry) []*Command {
	made := make([]*Command, len(all))
	for i, e := range all {
		made[i] = e.Make()
	}
	return made
}

// CommonFlags are the flags that all commands take.
func CommonFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "dir", Usage: "use the pool in this `DIR` instead of $ROOST_DIR or the usual places"},
		&ucli.StringFlag{Name: "color", Usage: "colour the output: `auto|always|never`", Value: "auto"},
		&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this help"},
	}
}

// WithCommonFlags gives each command of a table the flags that all commands take.
func WithCommonFlags(all []*Command) []*Command {
	for _, c := range all {
		if !c.RawArgs {
			c.Flags = append(c.Flags, CommonFlags()...)
		}
	}
	return all
}
