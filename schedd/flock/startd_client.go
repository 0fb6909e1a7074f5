package flock

import (
	"context"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// StartdClient calls a machine of a host pool under the name that this schedd has there.
type StartdClient struct {
	wire.StartdClient
	Schedd string
}

// Fetch implements wire.StartdClient.
func (c StartdClient) Fetch(ctx context.Context, in *wire.FetchRequest,
	opts ...grpc.CallOption) (grpc.ServerStreamingClient[wire.FileChunk], error) {
	in.Schedd = c.Schedd
	return c.StartdClient.Fetch(ctx, in, opts...)
}

// Tail implements wire.StartdClient.
func (c StartdClient) Tail(ctx context.Context, in *wire.TailRequest,
	opts ...grpc.CallOption) (grpc.ServerStreamingClient[wire.LogChunk], error) {
	in.Schedd = c.Schedd
	return c.StartdClient.Tail(ctx, in, opts...)
}

// FetchImage implements wire.StartdClient.
func (c StartdClient) FetchImage(ctx context.Context, in *wire.FetchImageRequest,
	opts ...grpc.CallOption) (grpc.ServerStreamingClient[wire.FileChunk], error) {
	in.Schedd = c.Schedd
	return c.StartdClient.FetchImage(ctx, in, opts...)
}

// Put implements wire.StartdClient.
func (c StartdClient) Put(ctx context.Context,
	opts ...grpc.CallOption) (grpc.ClientStreamingClient[wire.FileChunk, wire.PutReply], error) {
	s, err := c.StartdClient.Put(ctx, opts...)
	return chunkStream{s, c.Schedd}, err
}

// PutImage implements wire.StartdClient.
func (c StartdClient) PutImage(ctx context.Context,
	opts ...grpc.CallOption) (grpc.ClientStreamingClient[wire.FileChunk, wire.PutReply], error) {
	s, err := c.StartdClient.PutImage(ctx, opts...)
	return chunkStream{s, c.Schedd}, err
}

// Shell implements wire.StartdClient.
func (c StartdClient) Shell(ctx context.Context,
	opts ...grpc.CallOption) (grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput], error) {
	s, err := c.StartdClient.Shell(ctx, opts...)
	return shellStream{s, c.Schedd}, err
}

type chunkStream struct {
	grpc.ClientStreamingClient[wire.FileChunk, wire.PutReply]
	schedd string
}

func (s chunkStream) Send(m *wire.FileChunk) error {
	if m.GetSchedd() != "" {
		m.Schedd = s.schedd
	}
	return s.ClientStreamingClient.Send(m)
}

type shellStream struct {
	grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput]
	schedd string
}

func (s shellStream) Send(m *wire.ShellInput) error {
	if m.GetSchedd() != "" {
		m.Schedd = s.schedd
	}
	return s.BidiStreamingClient.Send(m)
}
