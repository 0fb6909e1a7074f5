package daemons

import (
	"context"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/startd/desktop/guard"
)

func runGuard(ctx context.Context, n *config.Node, _ string) error { return guard.Run(ctx, n) }
