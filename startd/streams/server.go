package streams

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/inputcache"
)

// Loop is the machine's loop, as far as streams ask it. Several goroutines call its
// methods.
type Loop interface {
	// Find looks for an attempt. If it is here the loop calls found, on its own
	// goroutine, with the runner of its claim and the attempt's first process, 0 while
	// that does not run. The channel is closed when the loop has looked.
	Find(id roost.AttemptID, found func(r *claim.Runner, pid int)) (done <-chan struct{})
	// SendTo sends a message on the present session of a schedd, if there is one.
	SendTo(schedd string, message *wire.FromStartd)
	// Done returns a channel that is closed when the loop reads no more.
	Done() <-chan struct{}
}

// Options are what streams work with.
type Options struct {
	Log         *slog.Logger
	Loop        Loop
	Agents      *userfiles.AgentPool
	Checkpoints *claim.Checkpoints

	Inputs      *inputcache.Cache // nil: there is none
	CountCached func(bytes int64) // of input files that were in it
}

// Server answers all calls of the startd's service but Session, which is the loop's.
type Server struct {
	wire.UnimplementedStartdServer
	log           *slog.Logger
	loop          Loop
	agents        *userfiles.AgentPool
	checkpoints   *claim.Checkpoints
	inputs        *inputcache.Cache
	countCached   func(int64)
	objects       *object.Client
	spawnRequests spawnRequests
}

// New returns a server of no stream.
func New(o Options) *Server {
	return &Server{log: o.Log, loop: o.Loop, agents: o.Agents, checkpoints: o.Checkpoints, inputs: o.Inputs,
		countCached: o.CountCached, objects: object.NewClient()}
}

// CheckScheddIdentity checks that a peer may act for that schedd: over the network it is
// what its certificate says. Local daemons are told apart by nothing but their user.
func CheckScheddIdentity(ctx context.Context, schedd string) error {
	if p, ok := peer.FromContext(ctx); !ok || !p.SpeaksFor(schedd) {
		return fmt.Errorf("schedd %s: %w: %s may not speak for it", schedd, roost.PermissionDenied, p.Name)
	}
	return nil
}
