// Command roost-negotiator is what central managers replicate: the negotiator, and the
// queue of the cell. It is apart from roost-daemon because of the library of the
// replicated log.
package main

import (
	"fmt"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/agents"
	"github.com/roost-batch/roost/internal/roles"
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/schedd/cellqueue"
)

func main() {
	var role string
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	run, known := map[string]roles.RunFunc{
		"negotiator": roles.WithIdentity(negotiator.Run),
		"cell-queue": roles.WithIdentity(cellqueue.Run),
	}[role]
	if code, isAgent := agents.RunByName(role, os.Args[min(2, len(os.Args)):], roles.PrintError); isAgent {
		os.Exit(code)
	}
	if !known {
		os.Exit(roles.PrintError("", fmt.Errorf("%w: roost-daemon starts this program", roost.Usage)))
	}
	os.Exit(roles.PrintError(role, roles.Run(role, run, os.Args[2:])))
}
