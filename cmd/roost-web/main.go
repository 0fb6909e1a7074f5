// Command roost-web is the web daemon of a node: pages and the HTTP API. It is apart from
// roost-daemon because of the libraries of pages.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/oidc"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/roles"
	"github.com/roost-batch/roost/internal/web"
	"github.com/roost-batch/roost/internal/web/jobtext"
)

func main() {
	const role = "web"
	if len(os.Args) == 2 && os.Args[1] == jobtext.Role {
		os.Exit(jobtext.RunChild(os.Stdin, os.Stdout))
	}
	if len(os.Args) == 2 && os.Args[1] == proof.OIDCRole {
		os.Exit(oidc.RunChild(os.Stdin, os.Stdout))
	}
	if len(os.Args) < 2 || os.Args[1] != role {
		os.Exit(roles.PrintError("", fmt.Errorf("%w: roost-daemon starts this program", roost.Usage)))
	}
	run := func(ctx context.Context, n *config.Node, _ string) error { return web.Run(ctx, n) }
	os.Exit(roles.PrintError(role, roles.Run(role, run, os.Args[2:])))
}
