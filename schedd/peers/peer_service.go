package peers

import (
	"context"
	"math"

	"google.golang.org/grpc"

	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// LocalSchedd is the schedd of this host, as the others may ask it. Each method speaks
// for its own jobs only, and shows what that caller may see.
type LocalSchedd interface {
	ListJobs(ctx context.Context, q *wire.QueryRequest, who queue.CallerIdentity,
		send func(*wire.JobStatus) error) error
	ExplainJob(ctx context.Context, id string, who queue.CallerIdentity) (*wire.WhyReply, error)
	ListEvents(ctx context.Context, id string, who queue.CallerIdentity, send func(*wire.JobEvent) error) error
	ActOnJobs(ctx context.Context, req *wire.ActRequest, who queue.CallerIdentity) (*wire.ActReply, error)
}

// Service answers the other schedds of the pool. They get what every user may know.
// They know their users from their kernels, and this schedd does not. So what only a
// job's owner may see is shown to none of them, and nothing can be changed but by users
// with the capability for that.
type Service struct {
	wire.UnimplementedNeighbourServer
	local     LocalSchedd
	localName string
	admins    *JobAdmins
}

// NewService returns the service of the schedd of that name.
func NewService(local LocalSchedd, name string, admins *JobAdmins) *Service {
	return &Service{local: local, localName: name, admins: admins}
}

// remoteSubmitter is a user of another host. The name says which jobs are theirs in a
// list; no job belongs to the uid, which is nobody's (it is (uid_t) -1, as of chown(2)).
func (n *Service) remoteSubmitter(name string) queue.CallerIdentity {
	return queue.CallerIdentity{User: name, UID: math.MaxUint32, GID: math.MaxUint32, Host: n.localName}
}

// Query implements wire.NeighbourServer.
func (n *Service) Query(req *wire.NeighbourQuery, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	return n.local.ListJobs(stream.Context(), req.GetQuery(), n.remoteSubmitter(req.GetUser()), stream.Send)
}

// Why implements wire.NeighbourServer.
func (n *Service) Why(ctx context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	return n.local.ExplainJob(ctx, req.GetId(), n.remoteSubmitter(""))
}

// Events implements wire.NeighbourServer.
func (n *Service) Events(req *wire.EventsRequest, stream grpc.ServerStreamingServer[wire.JobEvent]) error {
	return n.local.ListEvents(stream.Context(), req.GetId(), n.remoteSubmitter(""), stream.Send)
}

// Act implements wire.NeighbourServer. The node in the certificate is the user's: a
// schedd speaks for its own users only.
func (n *Service) Act(ctx context.Context, req *wire.NeighbourAct) (*wire.ActReply, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Local || !n.admins.IsAdmin(req.GetUser(), p.Name) {
		return nil, fmt.Errorf("%w: %s@%s lacks the capability %q here; root on a central manager gives it with: "+
			"roost admin give %s@%s %s",
			roost.PermissionDenied, req.GetUser(), p.Name, "jobs", req.GetUser(), p.Name, "jobs")
	}
	who := queue.CallerIdentity{User: req.GetUser() + "@" + p.Name, UID: math.MaxUint32, GID: math.MaxUint32,
		Host: n.localName, Admin: true}
	return n.local.ActOnJobs(ctx, req.GetAct(), who)
}
