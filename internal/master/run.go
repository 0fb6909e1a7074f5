package master

import (
	"context"
	"io"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// Options is how a master runs.
type Options struct {
	Program  string        // what is started as "Program ROLE --config FILE [--name NAME]"; this program unless set
	Log      io.Writer     // the master's own log; standard error unless set
	Ready    func()        // called once, when every daemon serves
	Strict   bool          // a daemon that dies before it first serves ends the master, with the daemon's last words as the error
	Sweep    bool          // at the end, kill every process that is still descended from the master
	Patience time.Duration // how long a daemon has to stop before it is killed; 15 s unless set
}

// Run starts the daemons of the node, keeps them running, and returns when ctx has ended and all of them are gone. The node must have been
// loaded from a file, because that is what the daemons read. A master that holds the directory already makes it return an error of kind
// roost.Conflict that names the holder. Run owns all children of its process: call it from a process that has no others.
func Run(ctx context.Context, node *config.Node, opt Options) error { panic("not reached") }
