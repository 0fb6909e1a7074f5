package frame

import (
	"context"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Invocation is one execution of a command: its flags, its operands and its connections.
// It embeds the program, whose streams and clock it uses.
type Invocation struct {
	*App
	Context context.Context
	Command *Command
	Flags   *ucli.Context
	Args    []string // the operands

	// the node of the server that the environment of PBS names; empty: this machine's
	DefaultNode string

	conn         scheddapi.Conn // to the schedd that the command speaks to
	client       *scheddapi.ScheddClient
	isRemote     bool                   // the connection leads to a schedd of another node
	otherConns   []io.Closer            // closed at the end, too
	serverHealth *scheddapi.HealthReply // what the schedd reports of itself; nil: it was not asked
}

// close closes all connections.
func (c *Invocation) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	for _, conn := range c.otherConns {
		conn.Close()
	}
}

// CloseLater has a connection closed when the command ends.
func (c *Invocation) CloseLater(conn io.Closer) { c.otherConns = append(c.otherConns, conn) }

// IsConnected reports whether the command has a connection to a schedd, which need not
// answer.
func (c *Invocation) IsConnected() bool { return c.client != nil }

// SetDefaultNode makes the schedd of a node the one that the command speaks to where its
// operands name none. A connection from before leads to another schedd and is not used
// again.
func (c *Invocation) SetDefaultNode(node string) {
	if c.DefaultNode = node; node != "" && c.client != nil {
		c.CloseLater(c.conn)
		c.conn, c.client = nil, nil
	}
}

// Flag returns the value of a boolean flag.
func (c *Invocation) Flag(name string) bool { return c.Flags.Bool(name) }

// StringFlag returns the value of a flag that takes a text.
func (c *Invocation) StringFlag(name string) string { return c.Flags.String(name) }

// StringsFlag returns all values of a flag that may be repeated.
func (c *Invocation) StringsFlag(name string) []string { return c.Flags.StringSlice(name) }

// CountFlag returns the value of a flag that takes a whole number.
func (c *Invocation) CountFlag(name string) int { return c.Flags.Int(name) }

// IsFlagSet reports whether a flag is on the command line.
func (c *Invocation) IsFlagSet(name string) bool { return c.Flags.IsSet(name) }

// WantsJSON reports whether the command has to print JSON.
func (c *Invocation) WantsJSON() bool { return c.Flag("json") }
