package daemons

import (
	"context"

	"github.com/roost-batch/roost/checkpoint/server"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
)

func runCheckpointServer(ctx context.Context, n *config.Node, _ string) error {
	id, err := frame.LoadIdentity(n)
	if err != nil {
		return err
	}
	return server.Run(ctx, n, id)
}
