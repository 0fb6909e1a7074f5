// Command roost-accountant is the accountant of a pool, and the command roost accounting.
// It is apart from roost-daemon and roost because of the libraries of its database.
package main

import (
	"context"
	"os"

	"github.com/roost-batch/roost/internal/accounting/accountant"
	"github.com/roost-batch/roost/internal/accounting/store"
	"github.com/roost-batch/roost/internal/cli"
	"github.com/roost-batch/roost/internal/cli/accountingstore"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/roles"
	"github.com/roost-batch/roost/internal/rpc"
)

func main() {
	const role = "accountant"
	if len(os.Args) < 2 || os.Args[1] != role {
		own := func() []*frame.Command { return []*frame.Command{accountingstore.Command()} }
		os.Exit(cli.New(os.Stdin, os.Stdout, os.Stderr, os.Environ(), own).Run(context.Background(), os.Args))
	}
	os.Exit(roles.PrintError(role, roles.Run(role, roles.WithIdentity(run), os.Args[2:])))
}

func run(ctx context.Context, node *config.Node, id *rpc.Identity) error {
	return accountant.Run(ctx, node, id, func(ctx context.Context,
		s *config.AccountantSettings) (accountant.Store, error) {
		return store.Open(ctx, store.Options{Directory: s.Dir, Postgres: s.Database})
	})
}
