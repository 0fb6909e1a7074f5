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
	name     string
	aliases  []string
	group    string
	brief    string // a few words, without a full stop
	args     string // as in "FILE" or "JOB…"
	about    string // sentences for the help
	examples []example
	flags    []ucli.Flag
	least    int    // how many operands it needs
	most     int    // how many it takes; -1 for any number
	wants    string // what the first of them is, for messages
	strict   bool   // flags end at the first operand
	raw      bool   // it parses its own arguments; the flags are for the help and the manual
	hidden   bool
	local    bool                                    // a PBS command that asks no schedd, or the one of its job
	signed   func(operands []string, err error) bool // whether what begins with - and is no flag, as err says, is an operand
	branches func() []branch                         // what its first operand may be, for the completion of words; nil: not one of a list
	do       func(c *call) error
}

type example struct{ line, what string }

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

func groups() []string {
	return []string{groupRun, groupSee, groupChange, groupOwner, groupPool, groupAdmin, groupPBS, groupMore}
}

func jsonFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "json", Usage: "print JSON for programs; roost-json(7) describes it"}
}

func find(all []*command, name string) *command {
	for _, c := range all {
		if c.name == name || slices.Contains(c.aliases, name) {
			return c
		}
	}
	return nil
}

// call is one execution of a command.
type call struct {
	*App
	ctx   context.Context
	cmd   *command
	flags *ucli.Context
	args  []string

	standard string // the node of the server that the environment of PBS names, where that is not this machine's

	conn   *grpc.ClientConn
	client wire.ScheddClient
	more   []*grpc.ClientConn // to other schedds
	health *wire.HealthReply  // what the schedd says of itself; nil: it was not asked
}

func (c *call) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	for _, conn := range c.more {
		conn.Close()
	}
}

func (c *call) flag(name string) bool      { return c.flags.Bool(name) }
func (c *call) text(name string) string    { return c.flags.String(name) }
func (c *call) texts(name string) []string { return c.flags.StringSlice(name) }
func (c *call) count(name string) int      { return c.flags.Int(name) }
func (c *call) given(name string) bool     { return c.flags.IsSet(name) }
func (c *call) json() bool                 { return c.flag("json") }

// everywhere are the flags that all commands take.
func everywhere() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "dir", Usage: "use the pool in this `DIR` instead of $ROOST_DIR or the usual places"},
		&ucli.StringFlag{Name: "color", Usage: "colour the output: `auto|always|never`", Value: "auto"},
		&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this help"},
	}
}
