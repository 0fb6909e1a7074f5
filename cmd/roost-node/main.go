// Command roost-node is the commands that set up, run and examine a node. The program
// roost starts it for them; it lies beside roost.
package main

import (
	"context"
	"os"

	"github.com/roost-batch/roost/internal/cli"
	"github.com/roost-batch/roost/internal/cli/nodeprogram"
)

func main() {
	app := cli.New(os.Stdin, os.Stdout, os.Stderr, os.Environ(), nodeprogram.Commands)
	os.Exit(app.Run(context.Background(), os.Args))
}
