package cli

import (
	"context"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/startd"
)

func runStartd(ctx context.Context, n *config.Node, name string) error {
	printWarnings(n)
	return startd.Run(ctx, n, name)
}
