// Command roost-daemon is the daemons of a node but for the negotiator, and their agents.
// A master starts it.
package main

import (
	"os"

	"github.com/roost-batch/roost/internal/roles/noderoles"
)

func main() { os.Exit(noderoles.Main(os.Args)) }
