package schedd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// removals are images on checkpoint servers that nobody will go on from any more. A server that has an entry has somebody who works on it. They
// are in memory only: what is lost with it, the server deletes itself when nobody has asked for it in a long time.
type removals struct {
	mu      sync.Mutex
	waiting map[string][]*wire.FetchImageRequest // by the server's address
}

// Bounds on the patience with a server that does not answer.
const (
	maxRemovals   = 100_000 // that wait for one
	removalTime   = 30 * time.Second
	longestRemove = 24 * time.Hour
)

// removeThere has an image on a checkpoint server deleted, at once or when the server can be reached again.
func (s *Schedd) removeThere(server string, image *wire.FetchImageRequest) {
	r := &s.removals
	r.mu.Lock()
	defer r.mu.Unlock()
	list, working := r.waiting[server]
	if len(list) >= maxRemovals {
		s.log.Warn("checkpoint not deleted: too many wait for the server", "server", server, "job", image.GetAttempt().GetJob())
		return
	}
	if r.waiting == nil {
		r.waiting = make(map[string][]*wire.FetchImageRequest)
	}
	r.waiting[server] = append(list, image)
	if !working {
		go s.removeAll(server)
	}
}

// next is the image to be deleted next; nil, and nobody works on the server any more, when there is none.
func (r *removals) next(server string, done bool) *wire.FetchImageRequest {
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

// giveUp drops all that waits for a server, and returns how many images that is.
func (r *removals) giveUp(server string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.waiting[server])
	delete(r.waiting, server)
	return n
}

// removeAll deletes what is to be deleted on one server.
func (s *Schedd) removeAll(server string) {
	conn, err := rpc.Dial(server, s.identity, auth.CheckpointServer)
	if err != nil {
		s.log.Warn("checkpoints not deleted", "server", server, "error", err, "count", s.removals.giveUp(server))
		return
	}
	defer conn.Close()
	client := wire.NewCheckpointServerClient(conn)
	answered, wait := time.Now(), firstRetry
	for image := s.removals.next(server, false); image != nil; {
		err := removeOne(s.life, client, image)
		if errors.Is(err, roost.Unavailable) || errors.Is(err, context.DeadlineExceeded) {
			if time.Since(answered) > longestRemove {
				s.log.Warn("checkpoints not deleted: the server does not answer", "server", server, "count", s.removals.giveUp(server))
				return
			}
			select {
			case <-s.life.Done():
				return
			case <-time.After(wait):
			}
			wait = min(2*wait, lastRetry)
			continue
		}
		if s.life.Err() != nil {
			return
		}
		if err != nil {
			s.log.Warn("checkpoint not deleted", "server", server, "job", image.GetAttempt().GetJob(), "error", err)
		}
		answered, wait = time.Now(), firstRetry
		image = s.removals.next(server, true)
	}
}

func removeOne(ctx context.Context, client wire.CheckpointServerClient, image *wire.FetchImageRequest) error {
	ctx, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	_, err := client.Remove(ctx, image)
	return rpc.FromStatus(err)
}
