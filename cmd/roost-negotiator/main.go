// Command roost-negotiator is the negotiator of a central manager. It is apart from
// roost-daemon because of the library of its replicated log.
package main

import (
	"fmt"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/roles"
	"github.com/roost-batch/roost/negotiator"
)

func main() {
	const role = "negotiator"
	if len(os.Args) < 2 || os.Args[1] != role {
		os.Exit(roles.PrintError("", fmt.Errorf("%w: roost-daemon starts this program", roost.Usage)))
	}
	os.Exit(roles.PrintError(role, roles.Run(role, roles.WithIdentity(negotiator.Run), os.Args[2:])))
}
