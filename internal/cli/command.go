package cli

import (
	"context"
	"slices"

	ucli "github.com/urfave/cli/v2"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// command is one thing that people can ask for.
type command struct {
	name          string
	aliases       []string
	group         string
	summary       string // a few words, without a full stop
	synopsis      string // as in "FILE" or "JOB…"
	description   string // sentences for the help
	examples      []commandExample
	flags         []ucli.Flag
	minOperands   int    // how many operands it needs
	maxOperands   int    // how many it takes; -1 for any number
	operandName   string // what the first of them is, for messages
	flagsFirst    bool   // flags end at the first operand
	rawArgs       bool   // it parses its own arguments; the flags are for the help and the manual
	hidden        bool
	withoutServer bool // a PBS command that asks no schedd, or the one of its job
	// whether what begins with - and is no flag, as err says, is an operand
	signedOperands func(operands []string, err error) bool
	// what its first operand may be, for the completion of words; nil: not one of a list
	branches func() []subcommand
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

// invocation is one execution of a command.
type invocation struct {
	*App
	ctx   context.Context
	cmd   *command
	flags *ucli.Context
	args  []string

	defaultNode string // the node of the server that the environment of PBS names, where that is not this machine's

	conn         *grpc.ClientConn
	client       wire.ScheddClient
	otherConns   []*grpc.ClientConn // to other schedds
	serverHealth *wire.HealthReply  // what the schedd says of itself; nil: it was not asked
}

func (c *invocation) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	for _, conn := range c.otherConns {
		conn.Close()
	}
}

func (c *invocation) flag(name string) bool            { return c.flags.Bool(name) }
func (c *invocation) stringFlag(name string) string    { return c.flags.String(name) }
func (c *invocation) stringsFlag(name string) []string { return c.flags.StringSlice(name) }
func (c *invocation) countFlag(name string) int        { return c.flags.Int(name) }
func (c *invocation) isFlagSet(name string) bool       { return c.flags.IsSet(name) }
func (c *invocation) wantsJSON() bool                  { return c.flag("json") }

// commonFlags are the flags that all commands take.
func commonFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "dir", Usage: "use the pool in this `DIR` instead of $ROOST_DIR or the usual places"},
		&ucli.StringFlag{Name: "color", Usage: "colour the output: `auto|always|never`", Value: "auto"},
		&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this help"},
	}
}
