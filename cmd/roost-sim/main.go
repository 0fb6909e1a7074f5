// Command roost-sim is the simulator, with what draws its charts. The program roost
// starts it for roost sim; it lies beside roost.
package main

import (
	"context"
	"os"

	"github.com/roost-batch/roost/internal/cli"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/sim"
	"github.com/roost-batch/roost/internal/cli/slurm/forecast"
)

func main() {
	own := func() []*frame.Command { return append(forecast.Commands(), sim.Command()) }
	os.Exit(cli.New(os.Stdin, os.Stdout, os.Stderr, os.Environ(), own).Run(context.Background(), os.Args))
}
