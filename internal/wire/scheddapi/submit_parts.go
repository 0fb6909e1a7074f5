package scheddapi

import (
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire/codes"
)

// Sizes of a submission, in bytes.
const (
	MaxSubmitPart  = 1 << 20 // bytes of data in one SubmitPart
	maxSubmitWhole = 3 << 20 // a longer submission is sent in parts
)

// PartSender sends the parts of a submission.
type PartSender interface {
	Send(*SubmitPart) error
	CloseAndRecv() (*SubmitReply, error)
}

// SubmitCalls are the calls by which a client submits jobs.
type SubmitCalls struct {
	Whole           func(context.Context, *SubmitRequest) (*SubmitReply, error)
	Parts           func(context.Context) (PartSender, error)
	IsUnimplemented func(error) bool // of an error: the schedd does not know the call
	Sent            func(bytes int)  // called after each part; nil: nobody follows it
}

// SendSubmission sends a submission, in parts if it is too long for one message. To a
// schedd of an older release it is sent in one message.
func SendSubmission(ctx context.Context, by SubmitCalls, req *SubmitRequest) (*SubmitReply, error) {
	if proto.Size(req) <= maxSubmitWhole {
		return by.Whole(ctx, req)
	}
	reply, err := submitParts(ctx, by, req)
	if err != nil && by.IsUnimplemented(err) {
		return by.Whole(ctx, req)
	}
	return reply, err
}

func submitParts(ctx context.Context, by SubmitCalls, req *SubmitRequest) (*SubmitReply, error) {
	rest, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	stream, err := by.Parts(ctx)
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
		if by.Sent != nil {
			by.Sent(len(part.Data))
		}
		part = &SubmitPart{}
	}
	return stream.CloseAndRecv()
}

// SendSubmission sends a submission, in parts if it is too long for one message. Then it
// calls sent, which may be nil, after each.
func (c *ScheddClient) SendSubmission(ctx context.Context, req *SubmitRequest, sent func(bytes int)) (*SubmitReply,
	error) {
	return SendSubmission(ctx, SubmitCalls{
		Whole: c.Submit, Sent: sent,
		Parts: func(ctx context.Context) (PartSender, error) { return c.SubmitParts(ctx) },
		IsUnimplemented: func(err error) bool {
			var coded interface{ StatusCode() codes.Code }
			return errors.As(err, &coded) && coded.StatusCode() == codes.Unimplemented
		},
	}, req)
}
