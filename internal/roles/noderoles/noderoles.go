// Package noderoles is the program roost-daemon: the daemons of a node but for the
// negotiator, the web daemon and the accountant, the master that starts them, and their
// agents.
package noderoles

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/roles"
	"github.com/roost-batch/roost/internal/store/bucket"
	"github.com/roost-batch/roost/schedd"
	"github.com/roost-batch/roost/schedd/transfer"
	"github.com/roost-batch/roost/startd"
	"github.com/roost-batch/roost/startd/desktop/guard"
)

func nodeRoles() map[string]roles.RunFunc {
	return map[string]roles.RunFunc{
		"collector":         roles.WithIdentity(collector.Run),
		"schedd":            roles.WithIdentity(schedd.RunWithObjects(openObjects())),
		"checkpoint-server": roles.WithIdentity(server.Run),
		"startd":            runStartd,
		"guard":             func(ctx context.Context, n *config.Node, _ string) error { return guard.Run(ctx, n) },
		"authority":         func(ctx context.Context, n *config.Node, _ string) error { return ca.Run(ctx, n) },
	}
}

// openObjects returns the function that opens object stores. All accounts of one object
// store wait together if it asks for fewer requests.
func openObjects() transfer.OpenObjectAccount {
	backoff := object.NewBackoff()
	return func(store *config.ObjectStore, keys []byte) (transfer.ObjectAccount, error) {
		account, err := bucket.OpenAccount(bucket.AccountOptions{Endpoint: store.Endpoint, Region: store.Region,
			PathStyle: store.PathStyle, Keys: keys, Backoff: backoff})
		if err != nil {
			return nil, err
		}
		return account, nil
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
		return roles.PrintError("", fmt.Errorf("%w: roost, roost-node or a master starts this program", roost.Usage))
	}
	name, rest := args[1], args[2:]
	if code, known := agents.RunByName(name, rest, roles.PrintError); known {
		return code
	}
	switch run := nodeRoles()[name]; {
	case run != nil:
		return roles.PrintError(name, roles.Run(name, run, rest))
	case name == "master":
		return roles.PrintError(name, runMaster(rest))
	case name == "up":
		return roles.PrintError(name, runUp(rest))
	case name == "negotiator", name == "cell-queue", name == "web", name == "accountant":
		return roles.PrintError(name, execProgram(name, rest))
	}
	return roles.PrintError("", fmt.Errorf("%w: unknown role %q", roost.Usage, name))
}

func runMaster(args []string) error {
	file, _, err := roles.ParseArgs("master", args)
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
	return replaceSelf(master.Run(ctx, n, master.RunOptions{Ready: daemon.ReportReady}))
}

func runUp(args []string) error {
	opt, err := master.ParseUpArgs(args)
	if err != nil {
		return err
	}
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	return replaceSelf(master.Up(ctx, opt))
}

// replaceSelf executes the program of a master anew, if the master asks for it. The
// process stays the same, so systemd and running tasks do not notice.
func replaceSelf(err error) error {
	if !errors.Is(err, master.ErrReplaced) {
		return err
	}
	self, err := os.Executable() // the file that is there now, if another has replaced it
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	err = syscall.Exec(self, os.Args, os.Environ())
	return fmt.Errorf("%s: %w: %w", self, roost.NoInput, err)
}

// execProgram runs a daemon that has a program of its own in the place of this process.
// The negotiator's has the library of the replicated log, the web daemon's that of pages,
// and the accountant's that of the database.
func execProgram(role string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	program := role
	if role == "cell-queue" {
		program = "negotiator"
	}
	path := filepath.Join(filepath.Dir(self), "roost-"+program)
	err = syscall.Exec(path, append([]string{path, role}, args...), os.Environ())
	return fmt.Errorf("%s: %w: %w: it belongs beside roost-daemon", path, roost.NoInput, err)
}
