package streams

import (
	"fmt"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// PutImage takes the image that an attempt is to be restored from, while it holds for it.
func (m *Server) PutImage(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a, err := m.acquireAttempt(stream.Context(), first.GetSchedd(), first.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	if !a.AwaitsImage() {
		return fmt.Errorf("attempt %v: %w: it does not wait for an image", a.ID(), roost.Conflict)
	}
	if err := m.checkpoints.ReceiveImage(first.GetSchedd(), a, stream.Recv); err != nil {
		return err
	}
	return stream.SendAndClose(&wire.PutReply{Files: 1, Bytes: a.ImageSize()})
}

// FetchImage sends an image that was taken here.
func (m *Server) FetchImage(req *wire.FetchImageRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	a, err := m.acquireAttempt(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	return m.checkpoints.SendImage(req.GetSchedd(), a, req.GetSequence(), stream.Send)
}
