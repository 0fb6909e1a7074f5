// A command is over before it has used what the control group grants it; to read that at
// the start takes longer than it could save.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command roost is the commands of Roost; qmgr, pbsnodes and their like are links to it,
// and qsub, qstat and their like to roost-q. It passes the command lines of others on:
// what sets a node up is in roost-node, daemons are in roost-daemon, and roost sim is in
// roost-sim.
package main

import (
	"context"
	"os"

	"github.com/roost-batch/roost/internal/cli"
)

func main() {
	os.Exit(cli.New(os.Stdin, os.Stdout, os.Stderr, os.Environ(), nil).Run(context.Background(), os.Args))
}
