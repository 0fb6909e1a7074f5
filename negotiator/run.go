package negotiator

import (
	"context"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
)

// Run serves as the negotiator of node until ctx ends. A nil identity serves unix sockets only.
func Run(ctx context.Context, node *config.Node, id *rpc.Identity) error {
	<-ctx.Done()
	return nil
}
