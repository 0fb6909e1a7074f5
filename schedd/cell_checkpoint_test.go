package schedd

import (
	"errors"
	"io"
	"os/user"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// CheckpointCell says for whom it was asked, and breaks off.
func (n *fakeNegotiator) CheckpointCell(req *wire.CheckpointCellRequest,
	to grpc.ServerStreamingServer[wire.CheckpointPiece]) error {
	if err := to.Send(&wire.CheckpointPiece{Data: []byte("for " + req.GetWho())}); err != nil {
		return err
	}
	return roost.Exhausted
}

// TestCheckpointCellForwarded checks that a checkpoint is requested under the caller's
// real identity. What the caller himself says of his identity has no effect. He receives
// the checkpoint's data, and its outcome.
func TestCheckpointCellForwarded(t *testing.T) {
	p := newPool(t)
	from, err := p.client.CheckpointCell(p.ctx(), &wire.CheckpointCellRequest{Who: "root@central"})
	if err != nil {
		t.Fatal(err)
	}
	piece, err := from.Recv()
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	if got, want := string(piece.GetData()), "for "+me.Username+"@"+hostName; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err = from.Recv(); err == nil || errors.Is(err, io.EOF) || !errors.Is(rpc.FromStatus(err), roost.Exhausted) {
		t.Errorf("it ends with %v", err)
	}
}
