package transfer

import (
	"context"
	"crypto/sha256"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/wire"
)

// imageNode is a startd as its images are fetched from it.
type imageNode struct {
	wire.StartdClient
	stream func(ctx context.Context, req *wire.FetchImageRequest) (grpc.ServerStreamingClient[wire.FileChunk], error)
}

func (n imageNode) FetchImage(ctx context.Context, req *wire.FetchImageRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[wire.FileChunk], error) {
	return n.stream(ctx, req)
}

// imageStream gives some chunks, and then says nothing more until it is broken off, or
// ends.
type imageStream struct {
	grpc.ClientStream
	ctx     context.Context
	chunks  []*wire.FileChunk
	stalled bool
}

func (s *imageStream) Recv() (*wire.FileChunk, error) {
	if len(s.chunks) > 0 {
		chunk := s.chunks[0]
		s.chunks = s.chunks[1:]
		return chunk, nil
	}
	if s.stalled {
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	return nil, io.EOF
}

// TestImageSlotsAreShared checks that a user's images are fetched while another user's
// transfers block. Those make no progress on all slots, or their nodes are away.
func TestImageSlotsAreShared(t *testing.T) {
	const ann, bob, image = 1001, 1002, "state"
	images, err := store.Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	files := New(Config{Host: "n"})
	files.images = images
	sum := sha256.Sum256([]byte(image))
	whole := []*wire.FileChunk{{Entry: &wire.FileEntry{Name: "1", Size: int64(len(image))}}, {Data: []byte(image)},
		{Eof: true, Sha256: sum[:]}}
	begun := make(chan struct{}, 100)
	stuck := &StartdNode{Name: "stuck", Client: imageNode{stream: func(ctx context.Context,
		_ *wire.FetchImageRequest) (grpc.ServerStreamingClient[wire.FileChunk], error) {
		begun <- struct{}{}
		return &imageStream{ctx: ctx, stalled: true}, nil
	}}}
	away := &StartdNode{Name: "away", Client: imageNode{stream: func(context.Context,
		*wire.FetchImageRequest) (grpc.ServerStreamingClient[wire.FileChunk], error) {
		select {
		case begun <- struct{}{}:
		default: // it is tried again and again, and nobody counts how often
		}
		return nil, roost.Unavailable
	}}}
	good := &StartdNode{Name: "good", Client: imageNode{stream: func(ctx context.Context,
		_ *wire.FetchImageRequest) (grpc.ServerStreamingClient[wire.FileChunk], error) {
		return &imageStream{ctx: ctx, chunks: whole}, nil
	}}}
	job := uint64(0)
	begin := func(ctx context.Context, p *StartdNode, uid uint32) chan error {
		job++
		a := roost.AttemptID{Task: roost.JobID{Seq: job, Host: "n"}.Task(0), Attempt: 1}
		ended := make(chan error, 1)
		go func() {
			ended <- retryUntilReachable(ctx, func() error {
				return files.fetchImage(ctx, p, a, uid, &wire.Image{Sequence: 1, Size: int64(len(image))})
			})
		}()
		return ended
	}
	for _, tt := range []struct {
		name string
		node *StartdNode
		uid  uint32 // whose image comes beside those of ann
	}{{"stalled", stuck, bob}, {"away", away, bob}, {"away, her own", away, ann}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var others []chan error
			for range 2 * maxImages {
				others = append(others, begin(ctx, tt.node, ann))
			}
			for range maxImages {
				receiveInTime(t, begun, "the images of ann")
			}
			if err := receiveInTime(t, begin(ctx, good, tt.uid), "the image"); err != nil {
				t.Errorf("got %v", err)
			}
			cancel()
			for _, ended := range others {
				if err := receiveInTime(t, ended, "the end of another"); err == nil {
					t.Error("one of the others came")
				}
			}
		})
	}
}

// receiveInTime receives what is to come, and fails if nothing does.
func receiveInTime[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing came", what)
	}
	return v
}
