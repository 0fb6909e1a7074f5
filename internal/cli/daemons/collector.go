package daemons

import (
	"context"

	"github.com/roost-batch/roost/collector"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
)

func runCollector(ctx context.Context, n *config.Node, _ string) error {
	id, err := frame.LoadIdentity(n)
	if err != nil {
		return err
	}
	return collector.Run(ctx, n, id)
}
