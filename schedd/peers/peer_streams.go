package peers

import (
	"context"
	"errors"
	"io"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// WatchPeer passes on how jobs of a peer fare until all are final.
func (n *Peers) WatchPeer(ctx context.Context, host string, req *wire.NeighbourWatch,
	to func(*wire.WatchEvent) error) error {
	return n.callPeer(ctx, host, func(ctx context.Context, client wire.NeighbourClient) error {
		stream, err := client.Watch(ctx, req)
		return forwardStream(stream, err, to)
	})
}

// PeerShell carries a shell between a user's terminal and a task of a peer's job. First
// is what the user's side has said already; receive returns what it says further.
func (n *Peers) PeerShell(ctx context.Context, host string, who queue.CallerIdentity, first *wire.ShellInput,
	receive func() (*wire.ShellInput, error), send func(*wire.ShellOutput) error) error {
	return n.callPeer(ctx, host, func(ctx context.Context, client wire.NeighbourClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := client.Shell(ctx)
		if err != nil {
			return err
		}
		err = stream.Send(&wire.NeighbourShell{User: who.User, Uid: who.UID, Gid: who.GID, Input: first})
		if err != nil && !errors.Is(err, io.EOF) { // the cause of EOF comes with Recv
			return err
		}
		go func() {
			defer cancel()
			for {
				input, err := receive()
				if err != nil || stream.Send(&wire.NeighbourShell{Input: input}) != nil {
					return
				}
			}
		}()
		return rpc.FromStatus(forwardStream(stream, nil, send))
	})
}
