package schedd

import (
	"context"
	"errors"
	"os/user"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Cell remembers what it was asked and refuses it.
func (n *fakeNegotiator) Cell(_ context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	n.adminRequests <- req
	return nil, roost.PermissionDenied
}

// TestCellNamesUser checks that the negotiator gets a cell request with the caller's
// identity. The name in the caller's request does not count. The refusal comes back.
func TestCellNamesUser(t *testing.T) {
	p := newPool(t)
	_, err := p.client.Cell(p.ctx(), &wire.CellRequest{Verb: "set", Kind: "limit", Who: "root@central", Passed: true,
		Name: "x"})
	if !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
		t.Errorf("the refusal comes back as %v", err)
	}
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	got := receiveNext(t, p.asked.adminRequests, "the wish")
	if got.GetWho() != me.Username+"@"+hostName || !got.GetTrusted() || got.GetPassed() || got.GetName() != "x" {
		t.Errorf("the negotiator hears %v", got)
	}
}
