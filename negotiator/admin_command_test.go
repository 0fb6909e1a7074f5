package negotiator

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// callCell sends a request about the cell to the negotiator of a node, repeatedly while
// none leads.
func (c *threeNegotiators) callCell(node string, req *wire.CellRequest) (*wire.CellReply, error) {
	c.Helper()
	conn, err := rpc.Dial(c.network.address(node), nil, peer.Negotiator)
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close()
	for {
		reply, err := wire.NewNegotiatorClient(conn).Cell(c.Context(), req, grpc.WaitForReady(true))
		if err = rpc.FromStatus(err); !errors.Is(err, roost.Unavailable) || c.Context().Err() != nil {
			return reply, err
		}
	}
}

// TestAdminCommandOutlivesLeader checks that a command to any negotiator is executed by
// the leader. The next leader must have its effect.
func TestAdminCommandOutlivesLeader(t *testing.T) {
	c := newThreeNegotiators(t)
	old, epoch := c.waitForLeader(0, c.nodes...)
	follower := c.otherNodes(old)[0]
	set := &wire.CellRequest{Verb: "set", Kind: "limit", Object: []byte(`{"name":"matlab","count":3}`)}
	if _, err := c.callCell(follower, set); err != nil {
		t.Fatal(err)
	}
	bad := &wire.CellRequest{Verb: "set", Kind: "limit", Object: []byte(`{"name":"matlab","count":-3}`)}
	if _, err := c.callCell(follower, bad); !errors.Is(err, roost.Invalid) {
		t.Errorf("a limit of -3: %v", err)
	}
	user := &wire.CellRequest{Verb: "set", Kind: "limit", Object: []byte(`{"name":"x","count":1}`), Who: "ann@c1"}
	if _, err := c.callCell(follower, user); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a user who may not: %v", err)
	}
	c.stops[old]()
	c.waitForLeader(epoch, c.otherNodes(old)...)
	reply, err := c.callCell(follower, &wire.CellRequest{Verb: "show", Kind: "limit"})
	if err != nil || !strings.Contains(string(reply.GetDocument()), `"count":3`) ||
		strings.Contains(string(reply.GetDocument()), `"x"`) {
		t.Errorf("%s, %v", reply.GetDocument(), err)
	}
}
