package schedd

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// hasNoImages is a checkpoint server that has the images which it is told of, and none at
// first.
type hasNoImages struct {
	wire.UnimplementedCheckpointServerServer
	has atomic.Bool
}

func (s *hasNoImages) Get(_ *wire.FetchImageRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	if !s.has.Load() {
		return rpc.Status(fmt.Errorf("image: %w", roost.NotFound))
	}
	return stream.Send(&wire.FileChunk{Data: []byte("state")})
}

// TestGangImages checks that an epoch of a gang is not committed on a node's word alone.
// A node says that an image is on a server which does not have it, or that it is of
// another attempt.
func TestGangImages(t *testing.T) {
	p, server := newPool(t), &hasNoImages{}
	address := "unix:" + filepath.Join(t.TempDir(), "images.sock")
	serve(t, address, func(s *rpc.Server) { wire.RegisterCheckpointServerServer(s, server) })
	id := p.submit("k", 2, "GangSize = 2; CheckpointSelf = true; CheckpointExitCode = 85").GetIds()[0]
	ranks := []*wire.AttemptRef{receiveNext(t, p.startd.activated, "an attempt").GetAttempt(),
		receiveNext(t, p.startd.activated, "another").GetAttempt()}
	report := func(rank int, image *wire.Image) string {
		image.Sequence, image.Size, image.Mac, image.Method = 1, 5, []byte("mac"), wire.CheckpointPolicy_METHOD_SELF
		p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{Attempt: ranks[rank],
			Image: image}}})
		return receiveNext(t, p.startd.imageResults, "a word on the image").GetError()
	}
	p.startd.images <- []byte("state")
	if why := report(0, &wire.Image{Attempt: 1}); why != "" {
		t.Fatalf("the first image: %s", why)
	}
	if why := report(1, &wire.Image{Attempt: 7, Server: address}); !strings.Contains(why, "another attempt") {
		t.Errorf("an image of another attempt: %q", why)
	}
	if why := report(1, &wire.Image{Attempt: 1, Server: address}); why == "" {
		t.Error("an image that the server does not have is taken for one")
	}
	if words := p.jobTimeline(id); strings.Contains(words, "gang-saved") || !strings.Contains(words, "staged") {
		t.Fatalf("after half an epoch: %s", words)
	}
	server.has.Store(true)
	if why := report(1, &wire.Image{Attempt: 1, Server: address}); why != "" {
		t.Fatalf("the second image: %s", why)
	}
	if words := p.jobTimeline(id); !strings.HasSuffix(words, "staged gang-saved") {
		t.Errorf("after an epoch: %s", words)
	}
}
