package cli

import (
	"slices"

	ucli "github.com/urfave/cli/v2"
)

// command is one thing that people can ask for.
type command struct {
	name        string
	aliases     []string
	group       string
	summary     string // a few words, without a full stop
	synopsis    string // as in "FILE" or "JOB…"
	description string // sentences for the help
	examples    []commandExample
	flags       []ucli.Flag
	minOperands int    // how many operands it needs
	maxOperands int    // how many it takes; -1 for any number
	operandName string // what the first of them is, for messages
	flagsFirst  bool   // flags end at the first operand
	rawArgs     bool   // it parses its own arguments; the flags are for the help and the manual
	hidden      bool
	// whether what begins with - and is no flag, as err says, is an operand
	signedOperands func(operands []string, err error) bool
	// what its first operand may be, for the completion of words; nil: not one of a list
	branches func() []subcommand
	prepare  func(c *invocation) error // what comes before run; nil: nothing
	run      func(c *invocation) error
}

type commandExample struct{ line, description string }

// The groups of commands, in the order in which the help shows them.
const (
	groupRun    = "Run work"
	groupSee    = "See what happens"
	groupChange = "Change what happens"
	groupOwner  = "Your machine"
	groupPool   = "The pool"
	groupAdmin  = "Administer the pool"
	groupPBS    = "PBS commands"
	groupMore   = "More"
)

func commandGroups() []string {
	return []string{groupRun, groupSee, groupChange, groupOwner, groupPool, groupAdmin, groupPBS, groupMore}
}

func jsonFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "json", Usage: "print JSON for programs; roost-json(7) describes it"}
}

func findCommand(all []*command, name string) *command {
	for _, c := range all {
		if c.name == name || slices.Contains(c.aliases, name) {
			return c
		}
	}
	return nil
}

// commonFlags are the flags that all commands take.
func commonFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "dir", Usage: "use the pool in this `DIR` instead of $ROOST_DIR or the usual places"},
		&ucli.StringFlag{Name: "color", Usage: "colour the output: `auto|always|never`", Value: "auto"},
		&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this help"},
	}
}

// withCommonFlags gives each command of a table the flags that all commands take.
func withCommonFlags(all []*command) []*command {
	for _, c := range all {
		if !c.rawArgs {
			c.flags = append(c.flags, commonFlags()...)
		}
	}
	return all
}
