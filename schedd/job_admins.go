package schedd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Users with the capability for it act on everybody's jobs, at all schedds of the pool.
// Who they are the leader says; a schedd that hears of none knows those that it heard of
// last. For a job in another schedd's queue their own schedd says who they are, and the
// other one looks whether that user of that node may.

// jobAdmins are the users who may act on everybody's jobs: "ann@n1", or "ann" of any
// node.
type jobAdmins struct{ names atomic.Pointer[[]string] }

func (a *jobAdmins) set(names []string) { a.names.Store(&names) }

// isAdmin reports whether a user of a node is one of them. A user's name that has an @ in
// it could be taken for a user of another node, and is none of them.
func (a *jobAdmins) isAdmin(user, node string) bool {
	names := a.names.Load()
	return names != nil && user != "" && !strings.Contains(user, "@") &&
		(slices.Contains(*names, user) || slices.Contains(*names, user+"@"+node))
}

// isDaemonUser reports whether a caller is root or the daemon's own user on this machine:
// what the cell's administrator gives does not make one.
func isDaemonUser(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	return ok && p.Local && p.Plays(peer.Schedd)
}

// splitAct cuts an act into one for each row of jobs of one schedd that its words name;
// the name of this schedd is empty. What a user may not do elsewhere stays here, where it
// is refused.
func (s *Schedd) splitAct(req *wire.ActRequest, who queue.CallerIdentity) (nodes []string, parts []*wire.ActRequest) {
	if !s.admins.isAdmin(who.User, s.node.Name) || req.GetVerb() == wire.ActRequest_ORDER {
		return []string{""}, []*wire.ActRequest{req}
	}
	for _, word := range req.GetSelection().GetSelectors() {
		host, there := s.remoteHost(word)
		if !there || !s.peerSchedds.hasPeer(host) {
			host = ""
		}
		if n := len(nodes); n == 0 || nodes[n-1] != host {
			part := proto.CloneOf(req)
			part.Selection.Selectors = nil
			nodes, parts = append(nodes, host), append(parts, part)
		}
		last := parts[len(parts)-1].Selection
		last.Selectors = append(last.Selectors, word)
	}
	if len(nodes) == 0 {
		return []string{""}, []*wire.ActRequest{req}
	}
	return nodes, parts
}

// actOnPeer has another schedd act on its jobs. Its refusals are told in the place of
// each job.
func (s *Schedd) actOnPeer(ctx context.Context, host string, req *wire.ActRequest,
	who queue.CallerIdentity) (reply *wire.ActReply) {
	err := s.callPeerWithin(ctx, host,
		func(ctx context.Context, client wire.NeighbourClient, alive func()) (err error) {
			reply, err = client.Act(ctx, &wire.NeighbourAct{User: who.User, Act: req})
			return rpc.FromStatus(err)
		})
	if err == nil {
		return reply
	}
	reply = &wire.ActReply{}
	for _, word := range req.GetSelection().GetSelectors() {
		reply.Results = append(reply.Results,
			&wire.ActReply_Result{Id: word, Error: err.Error(), Kind: uint32(rpc.KindOf(err))})
	}
	return reply
}

// Act implements wire.NeighbourServer. The node in the certificate is the user's: a
// schedd speaks for its own users only.
func (n *peerService) Act(ctx context.Context, req *wire.NeighbourAct) (*wire.ActReply, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Local || !n.admins.isAdmin(req.GetUser(), p.Name) {
		return nil, fmt.Errorf("%w: %s@%s lacks the capability %q here; root on a central manager gives it with: "+
			"roost admin give %s@%s %s",
			roost.PermissionDenied, req.GetUser(), p.Name, "jobs", req.GetUser(), p.Name, "jobs")
	}
	who := queue.CallerIdentity{User: req.GetUser() + "@" + p.Name, UID: math.MaxUint32, GID: math.MaxUint32,
		Host: n.node.Name, Admin: true}
	return n.actOnLocal(ctx, req.GetAct(), who)
}
