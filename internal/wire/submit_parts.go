package wire

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// MaxSubmitPart is the bytes of data in one SubmitPart.
const MaxSubmitPart = scheddapi.MaxSubmitPart

// SendSubmission sends a submission, in parts if it is too long for one message. To a
// schedd of an older release it is sent in one message.
func SendSubmission(ctx context.Context, to ScheddClient, req *SubmitRequest) (*SubmitReply, error) {
	return scheddapi.SendSubmission(ctx, scheddapi.SubmitCalls{
		Whole: func(ctx context.Context, req *SubmitRequest) (*SubmitReply, error) { return to.Submit(ctx, req) },
		Parts: func(ctx context.Context) (scheddapi.PartSender, error) { return to.SubmitParts(ctx) },
		IsUnimplemented: func(err error) bool {
			return status.Code(err) == codes.Unimplemented
		},
	}, req)
}
