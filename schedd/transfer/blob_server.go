package transfer

import (
	"context"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// BlobServer is the checkpoint server as the place of container images and packages.
type BlobServer struct {
	node     *config.Node // of the schedd
	identity *rpc.Identity
}

// NewBlobServer returns the checkpoint server that a node file names.
func NewBlobServer(node *config.Node, identity *rpc.Identity) BlobServer {
	return BlobServer{node, identity}
}

// Call calls the server. An image may be on its way for as long as its user waits.
func (s BlobServer) Call(ctx context.Context,
	call func(ctx context.Context, client wire.CheckpointServerClient) error) error {
	if s.node.ImageServer == "" {
		return fmt.Errorf("%w: container images are stored on the checkpoint server, and the node file of %s names "+
			"none: an administrator sets checkpoint_server there, see roost-node(5)", roost.Invalid, s.node.Name)
	}
	conn, err := rpc.Dial(s.node.ImageServer, s.identity, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := call(ctx, wire.NewCheckpointServerClient(conn)); err != nil {
		return fmt.Errorf("checkpoint server %s: %w", s.node.ImageServer, rpc.FromStatus(err))
	}
	return nil
}
