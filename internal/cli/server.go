package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// server is what the schedd that answers says of itself. It is asked once.
func (c *call) server() (*wire.HealthReply, error) {
	if c.health != nil {
		return c.health, nil
	}
	s, _, err := c.reader("")
	if err != nil {
		return nil, err
	}
	var reply *wire.HealthReply
	err = c.persist(askPatience, func(ctx context.Context, _ func()) (err error) {
		reply, err = s.Health(ctx, &wire.HealthRequest{Brief: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.health = reply
	return reply, nil
}

// dialect is which PBS the user speaks: what the environment says, else what the node has for all its users.
func (c *call) dialect() (roost.Dialect, error) {
	if named := c.getenv(dialectVariable); named != "" {
		d, err := roost.ParseDialect(named)
		if err != nil {
			return "", problem(roost.Usage, "%s: there is no dialect %q; there are %s and %s", dialectVariable, named, roost.OpenPBS, roost.Torque)
		}
		return d, nil
	}
	reply, err := c.server()
	if err != nil {
		return "", err
	}
	if d, err := roost.ParseDialect(reply.GetDialect()); err == nil {
		return d, nil
	}
	return roost.OpenPBS, nil // a newer schedd knows more
}

// dialectVariable is the variable of the environment that goes before what the node says.
const dialectVariable = "ROOST_DIALECT"

// unknownJob is what is said of a job that there is not.
func (c *call) unknownJob() string {
	if d, err := c.dialect(); err == nil && d == roost.Torque {
		return "Unknown Job Id Error"
	}
	return "Unknown Job Id"
}

// serverName is the schedd that answers.
func (c *call) serverName() (name string, err error) {
	reply, err := c.server()
	return reply.GetName(), err
}

// wholeID is an operand as OpenPBS names it in messages: with its server, the one that is asked where it says none. What is no id stays as it is.
func (c *call) wholeID(text string) string {
	id, _, _ := strings.Cut(text, "@")
	if _, ok := pbsID(text); !ok || strings.Contains(id, ".") {
		return cmp.Or(id, text)
	}
	host := cmp.Or(pbsHost(text), c.chosen())
	if host == "" {
		var err error
		if host, err = c.serverName(); err != nil {
			return id
		}
	}
	return id + "." + host
}
