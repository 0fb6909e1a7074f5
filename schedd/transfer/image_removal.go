package transfer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// imageRemovals are images on checkpoint servers that nobody will go on from any more. A
// server that has an entry has somebody who works on it. They are in memory only: what is
// lost with it, the server deletes itself when nobody has asked for it in a long time.
type imageRemovals struct {
	mu      sync.Mutex
	waiting map[string][]*wire.FetchImageRequest // by the server's address
}

// Bounds on the patience with a server that does not answer.
const (
	maxRemovals     = 100_000 // that wait for one
	removalTimeout  = 30 * time.Second
	maxRemovalRetry = 24 * time.Hour
)

// enqueueImageRemoval has an image on a checkpoint server deleted, at once or when the
// server can be reached again.
func (t *FileTransfers) enqueueImageRemoval(server string, image *wire.FetchImageRequest) {
	r := &t.imageRemovals
	r.mu.Lock()
	defer r.mu.Unlock()
	list, working := r.waiting[server]
	if len(list) >= maxRemovals {
		t.log.Warn("checkpoint not deleted: too many wait for the server", "server", server, "job",
			image.GetAttempt().GetJob())
		return
	}
	if r.waiting == nil {
		r.waiting = make(map[string][]*wire.FetchImageRequest)
	}
	r.waiting[server] = append(list, image)
	if !working {
		go t.runImageRemovals(server)
	}
}

// nextRemoval is the image to delete next. If there is none it is nil, and no worker
// handles the server any more.
func (r *imageRemovals) nextRemoval(server string, done bool) *wire.FetchImageRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done {
		r.waiting[server] = r.waiting[server][1:]
	}
	if len(r.waiting[server]) == 0 {
		delete(r.waiting, server)
		return nil
	}
	return r.waiting[server][0]
}

// dropServer drops all that waits for a server, and returns how many images that is.
func (r *imageRemovals) dropServer(server string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.waiting[server])
	delete(r.waiting, server)
	return n
}

// runImageRemovals deletes what is to be deleted on one server.
func (t *FileTransfers) runImageRemovals(server string) {
	conn, err := rpc.Dial(server, t.identity, peer.CheckpointServer)
	if err != nil {
		t.log.Warn("checkpoints not deleted", "server", server, "error", err, "count",
			t.imageRemovals.dropServer(server))
		return
	}
	defer conn.Close()
	client := wire.NewCheckpointServerClient(conn)
	answered, wait := time.Now(), minTransferRetry
	for image := t.imageRemovals.nextRemoval(server, false); image != nil; {
		err := removeServerImage(t.daemonContext, client, image)
		if errors.Is(err, roost.Unavailable) || errors.Is(err, context.DeadlineExceeded) {
			if time.Since(answered) > maxRemovalRetry {
				t.log.Warn("checkpoints not deleted: the server does not answer", "server", server, "count",
					t.imageRemovals.dropServer(server))
				return
			}
			select {
			case <-t.daemonContext.Done():
				return
			case <-time.After(wait):
			}
			wait = min(2*wait, maxTransferRetry)
			continue
		}
		if t.daemonContext.Err() != nil {
			return
		}
		if err != nil {
			t.log.Warn("checkpoint not deleted", "server", server, "job", image.GetAttempt().GetJob(), "error", err)
		}
		answered, wait = time.Now(), minTransferRetry
		image = t.imageRemovals.nextRemoval(server, true)
	}
}

func removeServerImage(ctx context.Context, client wire.CheckpointServerClient, image *wire.FetchImageRequest) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	_, err := client.Remove(ctx, image)
	return rpc.FromStatus(err)
}
