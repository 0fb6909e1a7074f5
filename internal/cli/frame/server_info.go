package frame

import (
	"context"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// ServerInfo is what the schedd reports of itself. It is asked once.
func (c *Invocation) ServerInfo() (*scheddapi.HealthReply, error) {
	if c.serverHealth != nil {
		return c.serverHealth, nil
	}
	s, _, err := c.JobReader("")
	if err != nil {
		return nil, err
	}
	var reply *scheddapi.HealthReply
	err = c.Retry(AskTimeout, func(ctx context.Context, _ func()) (err error) {
		reply, err = s.Health(ctx, &scheddapi.HealthRequest{Brief: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.serverHealth = reply
	return reply, nil
}

// ServerName is the node of the schedd that answers.
func (c *Invocation) ServerName() (name string, err error) {
	reply, err := c.ServerInfo()
	return reply.GetName(), err
}
