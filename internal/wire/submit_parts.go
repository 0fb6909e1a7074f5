package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Sizes of a submission, in bytes.
const (
	MaxSubmitPart  = 1 << 20 // bytes of data in one SubmitPart
	maxSubmitWhole = 3 << 20 // a longer submission is sent in parts
)

// SendSubmission sends a submission, in parts if it is too long for one message. To a
// schedd of an older release it is sent in one message.
func SendSubmission(ctx context.Context, to ScheddClient, req *SubmitRequest) (*SubmitReply, error) {
	if proto.Size(req) <= maxSubmitWhole {
		return to.Submit(ctx, req)
	}
	reply, err := submitParts(ctx, to, req)
	if status.Code(err) == codes.Unimplemented {
		return to.Submit(ctx, req)
	}
	return reply, err
}

func submitParts(ctx context.Context, to ScheddClient, req *SubmitRequest) (*SubmitReply, error) {
	rest, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	stream, err := to.SubmitParts(ctx)
	if err != nil {
		return nil, err
	}
	part := &SubmitPart{Size: uint64(len(rest))}
	for len(rest) > 0 {
		part.Data, rest = rest[:min(len(rest), MaxSubmitPart)], rest[min(len(rest), MaxSubmitPart):]
		if err := stream.Send(part); errors.Is(err, io.EOF) {
			break // the reply has the reason
		} else if err != nil {
			return nil, err
		}
		part = &SubmitPart{}
	}
	return stream.CloseAndRecv()
}
