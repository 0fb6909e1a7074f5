package schedd

import (
	"context"
	"math"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// peerService answers the other schedds of the pool. They are told what every user may
// know: who asks them they know from their kernels, and this schedd does not, so what
// only a job's owner may see is shown to none of them, and nothing can be changed but by
// users with the capability for that.
type peerService struct {
	wire.UnimplementedNeighbourServer
	*Schedd
}

// remoteSubmitter is a user of another host. The name says which jobs are theirs in a
// list; no job belongs to the uid, which is nobody's (it is (uid_t) -1, as of chown(2)).
func (s *Schedd) remoteSubmitter(name string) queue.CallerIdentity {
	return queue.CallerIdentity{User: name, UID: math.MaxUint32, GID: math.MaxUint32, Host: s.node.Name}
}

// Query implements wire.NeighbourServer.
func (n *peerService) Query(req *wire.NeighbourQuery, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	return n.runListQuery(stream.Context(), req.GetQuery(), n.remoteSubmitter(req.GetUser()), sendStatus(stream.Send))
}

// Why implements wire.NeighbourServer.
func (n *peerService) Why(ctx context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	return n.explainJob(ctx, req.GetId(), n.remoteSubmitter(""))
}

// Events implements wire.NeighbourServer.
func (n *peerService) Events(req *wire.EventsRequest, stream grpc.ServerStreamingServer[wire.JobEvent]) error {
	return n.listEvents(stream.Context(), req.GetId(), n.remoteSubmitter(""), stream.Send)
}
