package api

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// SubmitParts takes a submission that comes in several messages, as [Service.Submit]
// takes one. The first message says how long it is: there is room for so many bytes of
// its user before the rest is read.
func (s *Service) SubmitParts(stream grpc.ClientStreamingServer[wire.SubmitPart, wire.SubmitReply]) error {
	ctx := stream.Context()
	if _, err := s.callerOf(ctx); err != nil {
		return err
	}
	req, err := receiveParts(stream.Recv, func(size uint64) error { return rpc.ReserveIntake(ctx, size) })
	if err != nil {
		return err
	}
	reply, err := s.Submit(ctx, req)
	if err != nil {
		return err
	}
	return stream.SendAndClose(reply)
}

// receiveParts puts a submission together. It takes as many bytes as were announced,
// after hold has agreed to them.
func receiveParts(recv func() (*wire.SubmitPart, error), hold func(size uint64) error) (*wire.SubmitRequest, error) {
	var text []byte
	var size uint64
	for first := true; ; first = false {
		part, err := recv()
		if errors.Is(err, io.EOF) && !first {
			break
		} else if err != nil {
			return nil, err
		}
		if first {
			size = part.GetSize()
			if err := hold(size); err != nil {
				return nil, err
			}
			text = make([]byte, 0, size)
		}
		if n := uint64(len(text) + len(part.GetData())); n > size || len(part.GetData()) > wire.MaxSubmitPart {
			return nil, fmt.Errorf("submission: %w: a part has %d bytes and makes %d in all, and it was announced "+
				"with %d, in parts of at most %d",
				roost.Invalid, len(part.GetData()), n, size, wire.MaxSubmitPart)
		}
		text = append(text, part.GetData()...)
	}
	if uint64(len(text)) != size {
		return nil, fmt.Errorf("submission: %w: %d bytes came, and it was announced with %d", roost.Invalid,
			len(text), size)
	}
	req := &wire.SubmitRequest{}
	if err := proto.Unmarshal(text, req); err != nil {
		return nil, fmt.Errorf("submission: %w: %w", roost.Invalid, err)
	}
	return req, nil
}
