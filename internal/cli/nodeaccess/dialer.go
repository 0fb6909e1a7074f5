package nodeaccess

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Dialer is the frame.Dialer that reaches everything.
type Dialer struct{}

// DialSocket connects to a schedd of this machine.
func (Dialer) DialSocket(addr string) (scheddapi.Conn, error) {
	conn, err := rpc.DialLocal(addr)
	if err != nil {
		return nil, err
	}
	return rpc.CommandConn{ClientConn: conn}, nil
}

// LoginAt returns the user's login at a node; nil where there is none.
func (Dialer) LoginAt(c *frame.Invocation, node string) (frame.Login, error) {
	e, err := LoginAt(c, node)
	if e == nil || err != nil {
		return nil, err
	}
	return userLogin{e}, nil
}

// OnlyLogin is the user's login if there is a single one; nil otherwise.
func (d Dialer) OnlyLogin(c *frame.Invocation) frame.Login {
	dir, err := loginfile.Dir(c.Getenv)
	if err != nil {
		return nil
	}
	nodes := loginfile.Nodes(dir)
	if len(nodes) != 1 {
		return nil
	}
	e, _ := d.LoginAt(c, nodes[0])
	return e
}

// AskNegotiators asks with the key of this node's negotiator.
func (Dialer) AskNegotiators(c *frame.Invocation, req *scheddapi.CellRequest) (*scheddapi.CellReply, error) {
	n, err := ReadNodeFile(c)
	if err != nil || n.Negotiator == nil {
		return nil, nil
	}
	return askLocalCell(c, n, req)
}

// LoginAt returns the user's login at a node; nil where there is none.
func LoginAt(c *frame.Invocation, node string) (*login.LoginEntry, error) {
	dir, err := loginfile.Dir(c.Getenv)
	if err != nil {
		return nil, nil
	}
	e, err := login.Load(dir, node)
	if errors.Is(err, roost.NotFound) || errors.Is(err, roost.Invalid) {
		return nil, nil
	}
	return e, err
}

// userLogin is a login as commands use it.
type userLogin struct{ *login.LoginEntry }

// Dial connects to the schedd of the login.
func (e userLogin) Dial() (scheddapi.Conn, error) {
	id, err := e.Identity()
	if err != nil {
		return nil, err
	}
	conn, err := rpc.Dial(e.Address, id, peer.Schedd)
	if err != nil {
		return nil, err
	}
	return rpc.CommandConn{ClientConn: conn}, nil
}

// askLocalCell asks with the key of this node's negotiator. Whoever can read the key may
// do everything.
func askLocalCell(c *frame.Invocation, n *config.Node, req *scheddapi.CellRequest) (reply *scheddapi.CellReply,
	err error) {
	id, err := LoadIdentity(n)
	if err != nil {
		return nil, err
	}
	who, err := account.CurrentUser()
	if err != nil {
		return nil, err
	}
	req.Who, req.Trusted = who.Username+"@"+n.Name, true
	own := n.OwnNegotiator()
	addresses := append([]string{own}, slices.DeleteFunc(slices.Clone(n.Negotiators), func(a string) bool {
		return a == own
	})...)
	err = c.Retry(frame.AskTimeout, func(ctx context.Context, _ func()) (err error) { // nobody may lead for a moment
		for _, addr := range addresses {
			if reply, err = askNegotiator(ctx, addr, id, req); !errors.Is(err, roost.Unavailable) || ctx.Err() != nil {
				return err
			}
		}
		return err
	})
	return reply, err
}

func askNegotiator(ctx context.Context, addr string, id *rpc.Identity,
	req *scheddapi.CellRequest) (*scheddapi.CellReply, error) {
	conn, err := rpc.Dial(addr, id, peer.Negotiator)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, CellTimeout)
	defer cancel()
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, req)
	return reply, rpc.FromStatus(err)
}

// CellTimeout is how long a replica has for an answer: it may ask all others first.
const CellTimeout = 5 * time.Second

// AskReplica does one exchange with the replica of the negotiator at an address.
func AskReplica(ctx context.Context, addr string, id *rpc.Identity, patience time.Duration,
	do func(context.Context, wire.ReplicaClient) error) error {
	conn, err := rpc.Dial(addr, id, peer.Negotiator)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return rpc.FromStatus(do(ctx, wire.NewReplicaClient(conn)))
}
