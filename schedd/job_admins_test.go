package schedd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
)

// An act on jobs of several schedds is cut by schedd, in the order of its words, for who
// may act everywhere; for everybody else it stays where it is refused.
func TestActParts(t *testing.T) {
	s := newSchedd(&config.Node{Name: "n1", Schedd: &config.ScheddSettings{}}, nil, slog.New(slog.DiscardHandler),
		time.Unix(0, 0))
	s.peerSchedds = peers.New("n1", nil, s.log)
	s.peerSchedds.OnAdChanged(time.Unix(0, 0), []adclient.AdChange{{Name: "n2", Ad: "[]"}})
	s.admins.Set([]string{"ann@n1", "bob"})
	words := []string{"1", "2.n1", "3.n2", "4[7].n2", "@name", "5.n3"}
	parts := func(user string, verb wire.ActRequest_Verb) string {
		nodes, parts := s.splitAct(&wire.ActRequest{Verb: verb, Selection: &wire.Selection{Selectors: words}},
			queue.CallerIdentity{User: user, Host: "n1"})
		text := ""
		for i := range nodes {
			text += fmt.Sprintf("%s%v ", nodes[i], parts[i].GetSelection().GetSelectors())
		}
		return text
	}
	const here, apart = "[1 2.n1 3.n2 4[7].n2 @name 5.n3] ", "[1 2.n1] n2[3.n2 4[7].n2] [@name 5.n3] "
	for _, c := range []struct {
		user string
		verb wire.ActRequest_Verb
		want string
	}{
		{"ann", wire.ActRequest_HOLD, apart}, {"bob", wire.ActRequest_REMOVE, apart},
		{"cat", wire.ActRequest_HOLD, here}, {"", wire.ActRequest_HOLD, here},
		{"ann", wire.ActRequest_ORDER, here},
	} {
		if got := parts(c.user, c.verb); got != c.want {
			t.Errorf("%s, %v: got %s, want %s", c.user, c.verb, got, c.want)
		}
	}
	if nodes, _ := s.splitAct(&wire.ActRequest{}, queue.CallerIdentity{User: "ann"}); len(nodes) != 1 ||
		nodes[0] != "" {
		t.Errorf("without words: got %q", nodes)
	}
}

// A schedd speaks for the users of its own node only, whatever it says of them.
func TestActForUsersOfOtherNodes(t *testing.T) {
	s := newSchedd(&config.Node{Name: "n2", Schedd: &config.ScheddSettings{}}, nil, slog.New(slog.DiscardHandler),
		time.Unix(0, 0))
	s.admins.Set([]string{"ann@n1"})
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	s.daemonContext = stopped
	act := func(p peer.Peer, user string) error {
		ctx := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: p})
		_, err := peers.NewService(s, s.node.Name, &s.admins).Act(ctx, &wire.NeighbourAct{User: user,
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
