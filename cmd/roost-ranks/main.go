// Command roost-ranks runs the ranks of a task of an MPI program. A startd has it run in
// the place of the program; see roost-ranks(8).
package main

import (
	"os"

	"github.com/roost-batch/roost/startd/ranks"
)

func main() { os.Exit(ranks.Main(os.Args)) }
