// A command is over before it has used what the control group grants it; to read that at
// the start takes longer than it could save.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command roost-q is qsub, qstat, qdel and some more PBS commands, which are links to it,
// for users of this machine's schedd. It passes all other command lines on to roost.
package main

import (
	"context"
	"os"

	"github.com/roost-batch/roost/internal/cli/localpbs"
)

func main() {
	app := localpbs.New(os.Stdin, os.Stdout, os.Stderr, os.Environ())
	os.Exit(localpbs.Run(context.Background(), app, os.Args))
}
