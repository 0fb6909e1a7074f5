package cli

import (
	"context"

	"github.com/roost-batch/roost/internal/authority"
	"github.com/roost-batch/roost/internal/config"
)

func runAuthority(ctx context.Context, n *config.Node, _ string) error { return authority.Run(ctx, n) }
