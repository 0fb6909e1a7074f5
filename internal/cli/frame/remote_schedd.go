package frame

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Which schedd a command speaks to: the one that --schedd or $ROOST_SCHEDD names; else
// the one in whose queue all of the jobs are that it names, if the user is logged in
// there; else the one of this machine; and on a machine without any the only one where
// the user is logged in.

// ScheddName is the node whose schedd the user has named, if any.
func (c *Invocation) ScheddName() string { return cmp.Or(c.ScheddNode, c.Getenv("ROOST_SCHEDD")) }

// LoginAt returns the user's login at a node; nil where there is none.
func (c *Invocation) LoginAt(node string) (*login.LoginEntry, error) {
	dir, err := login.Dir(c.Getenv)
	if err != nil {
		return nil, nil
	}
	e, err := login.Load(dir, node)
	if errors.Is(err, roost.NotFound) || errors.Is(err, roost.Invalid) {
		return nil, nil
	}
	return e, err
}

// onlyLogin is the user's login if there is a single one.
func (c *Invocation) onlyLogin() *login.LoginEntry {
	dir, err := login.Dir(c.Getenv)
	if err != nil {
		return nil
	}
	nodes := login.Nodes(dir)
	if len(nodes) != 1 {
		return nil
	}
	e, _ := c.LoginAt(nodes[0])
	return e
}

func dialLogin(e *login.LoginEntry) (rpc.ClientConn, error) {
	id, err := e.Identity()
	if err != nil {
		return nil, err
	}
	return rpc.Dial(e.Address, id, peer.Schedd)
}

// remoteConn connects to the schedd of another node, if that is meant; nil: it is not.
func (c *Invocation) remoteConn() (rpc.ClientConn, error) {
	node := c.ScheddName()
	named := node != ""
	if !named {
		node = operandsHost(c.Args)
	}
	if node == "" {
		node = c.DefaultNode
		named = node != ""
	}
	if node == "" {
		return nil, nil
	}
	e, err := c.LoginAt(node)
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		return dialLogin(e)
	case !named || c.isLocalSchedd(node):
		return nil, nil
	}
	return nil, WithHint(KindErrorf(roost.Unauthenticated, "you are not logged in at %s", node),
		"on "+node+" run roost token --user, then here the line that it prints")
}

// isLocalSchedd reports whether the schedd of this machine is the one of that node.
func (c *Invocation) isLocalSchedd(node string) bool {
	conn, err := c.DialSchedd()
	if err != nil {
		return false
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context, AskTimeout)
	defer cancel()
	h, err := wire.NewScheddClient(conn).Health(ctx, &wire.HealthRequest{Brief: true})
	return err == nil && h.GetName() == node
}

// operandsHost is the node that all ids of jobs among the operands name; empty: they name
// none, or several.
func operandsHost(operands []string) (host string) {
	for _, text := range operands {
		of := IDHost(text)
		if of == "" || host != "" && host != of {
			return ""
		}
		host = of
	}
	return host
}

// IDHost is the node in the id of a job: "n2" of "12[3].n2".
func IDHost(text string) string {
	id, _, _ := strings.Cut(text, "@")
	head, host, _ := strings.Cut(id, ".")
	if n := document.LeadingDigits(head); n == 0 || n < len(head) && head[n] != '[' {
		return ""
	}
	return host
}

// JobReader connects to a schedd that answers questions about jobs, and returns whose
// jobs are meant. Everybody may ask through the schedd of this machine.
func (c *Invocation) JobReader(at string) (wire.ScheddClient, string, error) {
	at = cmp.Or(at, c.ScheddName())
	s, err := c.ConnectSchedd()
	if err == nil || c.DefaultServer() == "" || !errors.Is(err, roost.Unauthenticated) {
		return s, at, err
	}
	conn, serr := c.DialSchedd()
	if serr != nil {
		return nil, at, err
	}
	c.CloseLater(conn)
	return wire.NewScheddClient(conn), at, nil
}

// JobSchedd connects to the schedd that has a job. Where the user has no login there, it
// takes the command's own schedd.
func (c *Invocation) JobSchedd(host string) (wire.ScheddClient, error) {
	if host == "" || c.ScheddName() != "" {
		return c.ConnectSchedd()
	}
	e, err := c.LoginAt(host)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return c.ConnectSchedd()
	}
	conn, err := dialLogin(e)
	if err != nil {
		return nil, err
	}
	c.CloseLater(conn)
	return wire.NewScheddClient(conn), nil
}

// DefaultServer is the node whose schedd is meant where a job or queue names none. The
// user or the environment has named it; empty means this machine's schedd.
func (c *Invocation) DefaultServer() string { return cmp.Or(c.ScheddName(), c.DefaultNode) }
