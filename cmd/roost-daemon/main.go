// Command roost-daemon is the daemons of a node but for the negotiator, and their agents.
// A master starts it.
package main

import (
	"os"

	"github.com/roost-batch/roost/internal/roles"
)

func main() { os.Exit(roles.Main(os.Args)) }
