package cli

import (
	"context"
	"log/slog"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/startd"
)

func runStartd(ctx context.Context, n *config.Node, name string) error {
	printWarnings(n)
	return startd.Run(ctx, n, name)
}

// printWarnings tells people what in a node file they may not have meant.
func printWarnings(n *config.Node) {
	for _, text := range n.Warnings {
		slog.Warn("node file may not mean what it says", "where", text)
	}
}
