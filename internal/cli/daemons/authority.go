package daemons

import (
	"context"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/ca"
)

func runAuthority(ctx context.Context, n *config.Node, _ string) error { return ca.Run(ctx, n) }
