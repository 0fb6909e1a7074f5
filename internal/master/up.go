package master

import (
	"context"
	"io"

	"github.com/roost-batch/roost"
)

// UpOptions says what pool Up makes.
type UpOptions struct {
	Dir     string         // where; see config.PoolDir
	Nodes   int            // execute nodes; 1 unless set
	CPUs    roost.MilliCPU // what all nodes hand out together; what the machine has unless set
	Memory  roost.Bytes    // likewise
	Stdout  io.Writer      // for the few lines that say that the pool is ready; nil for none
	Program string         // as in Options
}

// Up runs a whole pool on this machine until ctx ends: one collector, negotiator and schedd and some startds, on unix sockets below the
// directory that only this user can reach. When it returns only the directory is left.
func Up(ctx context.Context, opt UpOptions) error { panic("not reached") }
