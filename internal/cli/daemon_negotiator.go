package cli

import (
	"context"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/negotiator"
)

func runNegotiator(ctx context.Context, n *config.Node, _ string) error {
	id, err := loadIdentity(n)
	if err != nil {
		return err
	}
	return negotiator.Run(ctx, n, id)
}
