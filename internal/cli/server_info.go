package cli

import (
	"context"

	"github.com/roost-batch/roost/internal/wire"
)

// serverInfo is what the schedd that answers says of itself. It is asked once.
func (c *invocation) serverInfo() (*wire.HealthReply, error) {
	if c.serverHealth != nil {
		return c.serverHealth, nil
	}
	s, _, err := c.jobReader("")
	if err != nil {
		return nil, err
	}
	var reply *wire.HealthReply
	err = c.retry(askTimeout, func(ctx context.Context, _ func()) (err error) {
		reply, err = s.Health(ctx, &wire.HealthRequest{Brief: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.serverHealth = reply
	return reply, nil
}

// serverName is the schedd that answers.
func (c *invocation) serverName() (name string, err error) {
	reply, err := c.serverInfo()
	return reply.GetName(), err
}
