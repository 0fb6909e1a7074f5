package schedd

import (
	"context"
	"math"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// nextDoor answers the other schedds of the pool. They are told what every user may know: who asks them they know from their kernels, and this
// schedd does not, so what only a job's owner may see is shown to none of them, and nothing can be changed but by users with the capability for that.
type nextDoor struct {
	wire.UnimplementedNeighbourServer
	*Schedd
}

// somebody is a user of another host. The name says which jobs are theirs in a list; no job belongs to the uid, which is nobody's (it is
// (uid_t) -1, as of chown(2)).
func (s *Schedd) somebody(name string) queue.Submitter {
	return queue.Submitter{User: name, UID: math.MaxUint32, GID: math.MaxUint32, Host: s.node.Name}
}

// Query implements wire.NeighbourServer.
func (n *nextDoor) Query(req *wire.NeighbourQuery, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	return n.list(stream.Context(), req.GetQuery(), n.somebody(req.GetUser()), sendStatus(stream.Send))
}

// Why implements wire.NeighbourServer.
func (n *nextDoor) Why(ctx context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	return n.whyOf(ctx, req.GetId(), n.somebody(""))
}

// Events implements wire.NeighbourServer.
func (n *nextDoor) Events(req *wire.EventsRequest, stream grpc.ServerStreamingServer[wire.JobEvent]) error {
	return n.eventsOf(stream.Context(), req.GetId(), n.somebody(""), stream.Send)
}
