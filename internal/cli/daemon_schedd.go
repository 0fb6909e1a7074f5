package cli

import (
	"context"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

func runSchedd(_ context.Context, _ *config.Node, _ string) error {
	return problem(roost.Unavailable, "this program was built without a schedd")
}
