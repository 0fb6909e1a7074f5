package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// server is what the schedd that answers says of itself. It is asked once.
func (c *call) server() (*wire.HealthReply, error) {
	if c.health != nil {
		return c.health, nil
	}
	err := c.ask(askPatience, func(ctx context.Context, s wire.ScheddClient) (err error) {
		c.health, err = s.Health(ctx, &wire.HealthRequest{Brief: true})
		return err
	})
	if err != nil {
		c.health = nil
	}
	return c.health, err
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
	host := cmp.Or(pbsHost(text), c.wanted())
	if host == "" {
		var err error
		if host, err = c.serverName(); err != nil {
			return id
		}
	}
	return id + "." + host
}
