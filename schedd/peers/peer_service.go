package peers

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/config"
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

	// SubmitFor takes in a submission of a user of another node. It is set in the queue
	// of the cell, which has the jobs of users of all submit nodes. Each node vouches for
	// its own users.
	SubmitFor func(ctx context.Context, req *wire.SubmitRequest, who queue.CallerIdentity) (*wire.SubmitReply, error)
	// LogsFor sends the output of a task, if the user may read it.
	LogsFor func(ctx context.Context, req *wire.LogsRequest, who queue.CallerIdentity,
		to func(*wire.LogChunk) error) error
	// WatchFor sends how jobs fare, as every user may know.
	WatchFor func(ctx context.Context, req *wire.WatchRequest, who queue.CallerIdentity,
		to func(*wire.WatchEvent) error) error
	// WaitsFor returns what the tasks of the schedd wait for.
	WaitsFor func(ctx context.Context) (*wire.WaitSummary, error)
	// ShellFor carries a shell in a task, if the user may enter it.
	ShellFor func(ctx context.Context, first *wire.ShellInput, who queue.CallerIdentity,
		receive func() (*wire.ShellInput, error), send func(*wire.ShellOutput) error) error
	// Trust lists the users that submit nodes may name to it; empty: all may name all.
	Trust config.TrustList
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

// userOfOrigin is a user of the submit node in the caller's certificate, in the queue of
// the cell. A daemon of this host speaks for nobody.
func (n *Service) userOfOrigin(ctx context.Context, name string, uid, gid uint32) (queue.CallerIdentity, bool) {
	p, ok := peer.FromContext(ctx)
	origin := p.Name
	if p.Local {
		origin = n.localName
	}
	if !ok || n.SubmitFor == nil || name == "" || origin == "" || !p.Local && !n.mayName(origin, name, uid) {
		return queue.CallerIdentity{}, false
	}
	return queue.CallerIdentity{User: name, UID: uid, GID: gid, Host: n.localName, Origin: origin}, true
}

// mayName reports whether a submit node may name a user to the queue of the cell.
func (n *Service) mayName(origin, name string, uid uint32) bool {
	return len(n.Trust) == 0 || n.Trust.MayNameUser(origin, account.UserEntry{Name: name, UID: uid, IsKnown: true})
}

// Submit implements wire.NeighbourServer.
func (n *Service) Submit(ctx context.Context, req *wire.NeighbourSubmit) (*wire.SubmitReply, error) {
	who, ok := n.userOfOrigin(ctx, req.GetUser(), req.GetUid(), req.GetGid())
	if !ok {
		if n.SubmitFor != nil {
			return nil, fmt.Errorf("%w: the queue of the cell does not trust the submit node to name the user %q; "+
				"an administrator adds both to trust in cell_queue, see roost-node(5)",
				roost.PermissionDenied, req.GetUser())
		}
		return nil, fmt.Errorf("%w: %s takes jobs of its own users only, and is not the queue of the cell",
			roost.PermissionDenied, n.localName)
	}
	return n.SubmitFor(ctx, req.GetRequest(), who)
}

// Query implements wire.NeighbourServer.
func (n *Service) Query(req *wire.NeighbourQuery, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	who, ok := n.userOfOrigin(stream.Context(), req.GetUser(), req.GetUid(), math.MaxUint32)
	if !ok || req.GetUid() == 0 {
		who = n.remoteSubmitter(req.GetUser())
	}
	return n.local.ListJobs(stream.Context(), req.GetQuery(), who, stream.Send)
}

// Why implements wire.NeighbourServer.
func (n *Service) Why(ctx context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	return n.local.ExplainJob(ctx, req.GetId(), n.remoteSubmitter(""))
}

// Events implements wire.NeighbourServer.
func (n *Service) Events(req *wire.EventsRequest, stream grpc.ServerStreamingServer[wire.JobEvent]) error {
	return n.local.ListEvents(stream.Context(), req.GetId(), n.remoteSubmitter(""), stream.Send)
}

// Act implements wire.NeighbourServer.
func (n *Service) Act(ctx context.Context, req *wire.NeighbourAct) (*wire.ActReply, error) {
	who, err := n.actingUser(ctx, req.GetUser(), req.GetUid(), req.GetGid())
	if err != nil {
		return nil, err
	}
	return n.local.ActOnJobs(ctx, req.GetAct(), who)
}

// Logs implements wire.NeighbourServer.
func (n *Service) Logs(req *wire.NeighbourLogs, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	who, err := n.actingUser(stream.Context(), req.GetUser(), req.GetUid(), req.GetGid())
	if err != nil {
		return err
	}
	return n.LogsFor(stream.Context(), req.GetRequest(), who, stream.Send)
}

// Watch implements wire.NeighbourServer.
func (n *Service) Watch(req *wire.NeighbourWatch, stream grpc.ServerStreamingServer[wire.WatchEvent]) error {
	who, ok := n.userOfOrigin(stream.Context(), req.GetUser(), req.GetUid(), math.MaxUint32)
	if !ok || req.GetUid() == 0 {
		who = n.remoteSubmitter(req.GetUser())
	}
	return n.WatchFor(stream.Context(), req.GetRequest(), who, stream.Send)
}

// Waits implements wire.NeighbourServer.
func (n *Service) Waits(ctx context.Context, _ *wire.WaitsRequest) (*wire.WaitSummary, error) {
	return n.WaitsFor(ctx)
}

// Shell implements wire.NeighbourServer. Users have shells in their own tasks in the
// queue of the cell only.
func (n *Service) Shell(stream grpc.BidiStreamingServer[wire.NeighbourShell, wire.ShellOutput]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	who, ok := n.userOfOrigin(stream.Context(), first.GetUser(), first.GetUid(), first.GetGid())
	if !ok || first.GetInput().GetSession() {
		return fmt.Errorf("%w: %s opens shells for users of other nodes in their own tasks in the queue of the cell "+
			"only; log in on its host: roost login", roost.PermissionDenied, n.localName)
	}
	return n.ShellFor(stream.Context(), first.GetInput(), who, func() (*wire.ShellInput, error) {
		m, err := stream.Recv()
		return m.GetInput(), err
	}, stream.Send)
}

// actingUser returns the user for whom another schedd acts. The node in the certificate
// is the user's: a schedd speaks for its own users only. Whether that user has the
// capability for the jobs of everybody, the leader has told this schedd. Without it users
// have their own jobs in the queue of the cell, and nothing in other queues.
func (n *Service) actingUser(ctx context.Context, name string, uid, gid uint32) (queue.CallerIdentity, error) {
	p, ok := peer.FromContext(ctx)
	isAdmin := ok && !p.Local && n.admins.IsAdmin(name, p.Name)
	if who, cell := n.userOfOrigin(ctx, name, uid, gid); cell {
		who.Admin = isAdmin
		return who, nil
	}
	if !isAdmin {
		return queue.CallerIdentity{}, fmt.Errorf("%w: %s@%s lacks the capability %q here; root on a central manager "+
			"gives it with: roost admin give %s@%s %s",
			roost.PermissionDenied, name, p.Name, "jobs", name, p.Name, "jobs")
	}
	return queue.CallerIdentity{User: name + "@" + p.Name, UID: math.MaxUint32, GID: math.MaxUint32,
		Host: n.localName, Admin: true}, nil
}
