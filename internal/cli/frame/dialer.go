package frame

import (
	"github.com/roost-batch/roost/internal/rpc/localrpc"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Dialer opens the connections of commands. The one of a program that starts fast reaches
// only this machine's schedd.
type Dialer interface {
	// DialSocket connects to a schedd of this machine, whose address is "unix:/path".
	DialSocket(addr string) (scheddapi.Conn, error)
	// LoginAt returns the user's login at a node; nil where there is none.
	LoginAt(c *Invocation, node string) (Login, error)
	// OnlyLogin is the user's login if there is a single one; nil otherwise.
	OnlyLogin(c *Invocation) Login
	// AskNegotiators asks with the key of this node's negotiator. Without a negotiator or
	// a key it returns nil.
	AskNegotiators(c *Invocation, req *scheddapi.CellRequest) (*scheddapi.CellReply, error)
}

// Login is a login of the user at the schedd of another node.
type Login interface {
	Dial() (scheddapi.Conn, error)
}

// SocketDialer is the Dialer of a user without logins. Calls whose sides both send many
// messages fail on its connections.
type SocketDialer struct{}

// DialSocket connects to a schedd of this machine.
func (SocketDialer) DialSocket(addr string) (scheddapi.Conn, error) {
	path, err := localrpc.SocketPath(addr)
	if err != nil {
		return nil, err
	}
	return localrpc.Dial(path), nil
}

// LoginAt returns nil.
func (SocketDialer) LoginAt(*Invocation, string) (Login, error) { return nil, nil }

// OnlyLogin returns nil.
func (SocketDialer) OnlyLogin(*Invocation) Login { return nil }

// AskNegotiators returns nil.
func (SocketDialer) AskNegotiators(*Invocation, *scheddapi.CellRequest) (*scheddapi.CellReply, error) {
	return nil, nil
}
