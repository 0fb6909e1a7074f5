package cli

import (
	"context"

	ucli "github.com/urfave/cli/v2"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// invocation is one execution of a command: its flags, its operands and its connections.
// It embeds the program, whose streams and clock it uses.
type invocation struct {
	*App
	ctx   context.Context
	cmd   *command
	flags *ucli.Context
	args  []string // the operands

	// the node of the server that the environment of PBS names; empty: this machine's
	defaultNode string

	conn         *grpc.ClientConn // to the schedd that the command speaks to
	client       wire.ScheddClient
	otherConns   []*grpc.ClientConn // closed at the end, too
	serverHealth *wire.HealthReply  // what the schedd reports of itself; nil: it was not asked
}

// close closes all connections.
func (c *invocation) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	for _, conn := range c.otherConns {
		conn.Close()
	}
}

// closeLater has a connection closed when the command ends.
func (c *invocation) closeLater(conn *grpc.ClientConn) { c.otherConns = append(c.otherConns, conn) }

// isConnected reports whether the command has a connection to a schedd, which need not
// answer.
func (c *invocation) isConnected() bool { return c.client != nil }

// setDefaultNode makes the schedd of a node the one that the command speaks to where its
// operands name none. A connection from before leads to another schedd and is not used
// again.
func (c *invocation) setDefaultNode(node string) {
	if c.defaultNode = node; node != "" && c.client != nil {
		c.closeLater(c.conn)
		c.conn, c.client = nil, nil
	}
}

// flag returns the value of a boolean flag.
func (c *invocation) flag(name string) bool { return c.flags.Bool(name) }

// stringFlag returns the value of a flag that takes a text.
func (c *invocation) stringFlag(name string) string { return c.flags.String(name) }

// stringsFlag returns all values of a flag that may be repeated.
func (c *invocation) stringsFlag(name string) []string { return c.flags.StringSlice(name) }

// countFlag returns the value of a flag that takes a whole number.
func (c *invocation) countFlag(name string) int { return c.flags.Int(name) }

// isFlagSet reports whether a flag is on the command line.
func (c *invocation) isFlagSet(name string) bool { return c.flags.IsSet(name) }

// wantsJSON reports whether the command has to print JSON.
func (c *invocation) wantsJSON() bool { return c.flag("json") }
