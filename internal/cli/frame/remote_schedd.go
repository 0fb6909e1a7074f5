package frame

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Which schedd a command speaks to: the one that --schedd or $ROOST_SCHEDD names; else
// the one in whose queue all of the jobs are that it names, if the user is logged in
// there; else the one of this machine; and on a machine without any the only one where
// the user is logged in.

// ScheddName is the node whose schedd the user has named, if any.
func (c *Invocation) ScheddName() string { return cmp.Or(c.ScheddNode, c.Getenv("ROOST_SCHEDD")) }

// remoteConn connects to the schedd of another node, if that is meant; nil: it is not.
func (c *Invocation) remoteConn() (scheddapi.Conn, error) {
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
	e, err := c.Dialer.LoginAt(c, node)
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		return e.Dial()
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
	h, err := scheddapi.NewScheddClient(conn).Health(ctx, &scheddapi.HealthRequest{Brief: true})
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
func (c *Invocation) JobReader(at string) (*scheddapi.ScheddClient, string, error) {
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
	return scheddapi.NewScheddClient(conn), at, nil
}

// JobSchedd connects to the schedd that has a job. Where the user has no login there, it
// takes the command's own schedd.
func (c *Invocation) JobSchedd(host string) (*scheddapi.ScheddClient, error) {
	if host == "" || c.ScheddName() != "" {
		return c.ConnectSchedd()
	}
	e, err := c.Dialer.LoginAt(c, host)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return c.ConnectSchedd()
	}
	conn, err := e.Dial()
	if err != nil {
		return nil, err
	}
	c.CloseLater(conn)
	c.isRemote = true
	return scheddapi.NewScheddClient(conn), nil
}

// DefaultServer is the node whose schedd is meant where a job or queue names none. The
// user or the environment has named it; empty means this machine's schedd.
func (c *Invocation) DefaultServer() string { return cmp.Or(c.ScheddName(), c.DefaultNode) }
