// Command roost is every daemon and every command of Roost; qsub, qstat and their like
// are links to it.
package main

import (
	"context"
	"os"

	"github.com/roost-batch/roost/internal/cli"
)

func main() {
	os.Exit(cli.New(os.Stdin, os.Stdout, os.Stderr, os.Environ()).Run(context.Background(), os.Args))
}
