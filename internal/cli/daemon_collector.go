package cli

import (
	"context"

	"github.com/roost-batch/roost/collector"
	"github.com/roost-batch/roost/internal/config"
)

func runCollector(ctx context.Context, n *config.Node, _ string) error {
	id, err := loadIdentity(n)
	if err != nil {
		return err
	}
	return collector.Run(ctx, n, id)
}
