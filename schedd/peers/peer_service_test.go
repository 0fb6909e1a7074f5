package peers

import (
	"context"
	"errors"
	"testing"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// stoppedSchedd is a schedd that acts on nothing any more.
type stoppedSchedd struct{ LocalSchedd }

func (stoppedSchedd) ActOnJobs(context.Context, *wire.ActRequest, queue.CallerIdentity) (*wire.ActReply, error) {
	return nil, roost.Unavailable
}

// TestActForUsersOfOtherNodes checks that a schedd can act only for the users of its own
// node. What it says of other users has no effect.
func TestActForUsersOfOtherNodes(t *testing.T) {
	admins := new(JobAdmins)
	admins.Set([]string{"ann@n1"})
	act := func(p peer.Peer, user string) error {
		ctx := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: p})
		_, err := NewService(stoppedSchedd{}, "n2", admins).Act(ctx, &wire.NeighbourAct{User: user,
			Act: &wire.ActRequest{Verb: wire.ActRequest_HOLD, Selection: &wire.Selection{Selectors: []string{"1"}}}})
		return err
	}
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	for _, c := range []struct {
		peer peer.Peer
		user string
		want roost.ErrorKind
	}{
		{node("n1"), "ann", roost.Unavailable}, // she may: it is this schedd that has stopped
		{node("n3"), "ann", roost.PermissionDenied},
		{node("n3"), "ann@n1", roost.PermissionDenied},
		{node("n1"), "bob", roost.PermissionDenied},
		{node("n1"), "", roost.PermissionDenied},
		{peer.Peer{Local: true}, "ann", roost.PermissionDenied},
	} {
		if err := act(c.peer, c.user); !errors.Is(err, c.want) || rpc.KindOf(err) != c.want {
			t.Errorf("%v for %q: got %v, want %v", c.peer, c.user, err, c.want)
		}
	}
}
