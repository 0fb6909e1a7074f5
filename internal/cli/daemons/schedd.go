package daemons

import (
	"context"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/schedd"
)

func runSchedd(ctx context.Context, n *config.Node, _ string) error {
	id, err := frame.LoadIdentity(n)
	if err != nil {
		return err
	}
	return schedd.Run(ctx, n, id)
}
