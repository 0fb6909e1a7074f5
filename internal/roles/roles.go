// Package roles runs a daemon as its master starts it: "PROGRAM ROLE --config FILE", with
// "--name NAME" for an execute node.
//
// The programs of daemons have no flags for people, no help and no commands, because
// several processes of them run on each node all the time. What they do not link is not
// in the memory of each: the library of flags and templates is a third of the code.
package roles

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

// RunFunc runs one daemon until ctx ends. The name is that of the execute node.
type RunFunc func(ctx context.Context, n *config.Node, name string) error

// WithIdentity loads the key of the node, if it has one, for a daemon.
func WithIdentity(run func(context.Context, *config.Node, *rpc.Identity) error) RunFunc {
	return func(ctx context.Context, n *config.Node, _ string) error {
		if n.TLS == nil {
			return run(ctx, n, nil)
		}
		id, err := pki.Load(n.TLS)
		if err != nil {
			return err
		}
		id.CellQueue = n.CellQueueName()
		return run(ctx, n, id)
	}
}

// Run runs a daemon until a signal comes.
func Run(role string, run RunFunc, args []string) error {
	file, name, err := ParseArgs(role, args)
	if err != nil {
		return err
	}
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	n, err := config.Load(file)
	if err != nil {
		return err
	}
	daemon.TrimHeap(ctx)
	defer daemon.StartProfile(role)()
	return run(ctx, n, name)
}

// ParseArgs reads --config FILE and --name NAME.
func ParseArgs(role string, args []string) (file, name string, err error) {
	f := flag.NewFlagSet(role, flag.ContinueOnError)
	f.SetOutput(io.Discard) // what it prints is in the error, too
	f.StringVar(&file, "config", config.DefaultFile, "")
	f.StringVar(&name, "name", "", "")
	if err := f.Parse(args); err != nil {
		return "", "", fmt.Errorf("%w: %w", roost.Usage, err)
	}
	if f.NArg() > 0 {
		return "", "", fmt.Errorf("%w: there is one argument too many: %q", roost.Usage, f.Arg(0))
	}
	return file, name, nil
}

// PrintError prints an error as a command of roost does, if there is one, and returns the
// exit status.
func PrintError(name string, err error) int {
	if err == nil {
		return 0
	}
	err = rpc.FromStatus(err)
	where := "roost"
	if name != "" && errors.Is(err, roost.Usage) {
		where += " " + name
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", where, err)
	return rpc.KindOf(err).ExitCode()
}
