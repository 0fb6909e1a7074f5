// Package roles is the program roost-daemon: the daemons of a node, the master that
// starts them, and their agents.
//
// It has no flags for people, no help and no commands, because several processes of it
// run on each node all the time. What it does not link is not in the memory of each: the
// library of flags and templates, the replicated log, and with them a third of the code.
// roost and roost-node check command lines and pass them on in the form that it reads.
package roles

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/server"
	"github.com/roost-batch/roost/collector"
	"github.com/roost-batch/roost/internal/agents"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/startd"
	"github.com/roost-batch/roost/startd/desktop/guard"
)

// nodeRole runs one daemon until ctx ends. The name is that of the execute node.
type nodeRole func(ctx context.Context, n *config.Node, name string) error

func nodeRoles() map[string]nodeRole {
	return map[string]nodeRole{
		"collector":         withIdentity(collector.Run),
		"schedd":            withIdentity(schedd.Run),
		"checkpoint-server": withIdentity(server.Run),
		"startd":            runStartd,
		"guard":             func(ctx context.Context, n *config.Node, _ string) error { return guard.Run(ctx, n) },
		"authority":         func(ctx context.Context, n *config.Node, _ string) error { return ca.Run(ctx, n) },
	}
}

// withIdentity loads the key of the node, if it has one, for a daemon.
func withIdentity(run func(context.Context, *config.Node, *rpc.Identity) error) nodeRole {
	return func(ctx context.Context, n *config.Node, _ string) error {
		if n.TLS == nil {
			return run(ctx, n, nil)
		}
		id, err := pki.Load(n.TLS)
		if err != nil {
			return err
		}
		return run(ctx, n, id)
	}
}

func runStartd(ctx context.Context, n *config.Node, name string) error {
	printWarnings(n)
	return startd.Run(ctx, n, name)
}

// printWarnings logs what in a node file may not mean what it says.
func printWarnings(n *config.Node) {
	for _, text := range n.Warnings {
		slog.Warn("node file may not mean what it says", "where", text)
	}
}

// Main runs what the arguments name, the program's own name being the first, and returns
// the exit status.
func Main(args []string) int {
	if len(args) < 2 {
		return printError("", fmt.Errorf("%w: roost, roost-node or a master starts this program", roost.Usage))
	}
	name, rest := args[1], args[2:]
	for _, a := range agents.All() {
		if a.Name == name {
			return runAgent(a, rest)
		}
	}
	switch run := nodeRoles()[name]; {
	case run != nil:
		return printError(name, runDaemon(name, run, rest))
	case name == "master":
		return printError(name, runMaster(rest))
	case name == "up":
		return printError(name, runUp(rest))
	case name == "negotiator":
		return printError(name, execNegotiator(args))
	}
	return printError("", fmt.Errorf("%w: unknown role %q", roost.Usage, name))
}

// runAgent runs an agent and returns its exit status.
func runAgent(a agents.Agent, args []string) int {
	err := a.Run(args)
	if err == nil || a.ExitCode == nil {
		return printError(a.Name, err)
	}
	fmt.Fprintf(os.Stderr, "roost: %v\n", err)
	return a.ExitCode(err)
}

// parseArgs reads --config FILE and --name NAME.
func parseArgs(role string, args []string) (file, name string, err error) {
	f := flag.NewFlagSet(role, flag.ContinueOnError)
	f.SetOutput(io.Discard) // what it prints is in the error, too
	f.StringVar(&file, "config", config.DefaultFile, "")
	f.StringVar(&name, "name", "", "")
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return "", "", fmt.Errorf("%w: %s %q: %v", roost.Usage, role, args, err)
	}
	return file, name, nil
}

func runDaemon(role string, run nodeRole, args []string) error {
	file, name, err := parseArgs(role, args)
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

func runMaster(args []string) error {
	file, _, err := parseArgs("master", args)
	if err != nil {
		return err
	}
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	n, err := config.Load(file)
	if err != nil {
		return err
	}
	daemon.Logger("master") // for what the packages below have to say
	printWarnings(n)
	return master.Run(ctx, n, master.RunOptions{Ready: daemon.ReportReady})
}

func runUp(args []string) error {
	opt, err := master.ParseUpArgs(args)
	if err != nil {
		return err
	}
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	return master.Up(ctx, opt)
}

// execNegotiator runs the negotiator in the place of this process. It is in roost-node,
// with the library of its replicated log.
func execNegotiator(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	path := filepath.Join(filepath.Dir(self), "roost-node")
	err = syscall.Exec(path, append([]string{path}, args[1:]...), os.Environ())
	return fmt.Errorf("%s: %w: %w: it belongs beside roost-daemon", path, roost.NoInput, err)
}

// printError prints an error as a command of roost does, if there is one, and returns the
// exit status.
func printError(name string, err error) int {
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
