package daemons

import (
	"context"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/startd"
)

func runStartd(ctx context.Context, n *config.Node, name string) error {
	frame.PrintWarnings(n)
	return startd.Run(ctx, n, name)
}
