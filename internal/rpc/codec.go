package rpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	pb "google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
)

// boundedCodec refuses messages too long for their type before they are parsed.
type boundedCodec struct {
	encoding.CodecV2
	limits   methodLimits
	refusals *logLimiter
}

func newCodec(refused *logLimiter) boundedCodec {
	return boundedCodec{encoding.GetCodecV2(proto.Name), newMethodLimits(), refused}
}

// Unmarshal implements encoding.CodecV2.
func (c boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(pb.Message); ok {
		name := m.ProtoReflect().Descriptor().FullName()
		if most, n := c.limits.maxBytes[name], data.Len(); most > 0 && n > most {
			c.refusals.log("refused a message that is too long", string(name), "bytes", n, "most", most)
			return fmt.Errorf("%s: %w: %d bytes, and %d is the most", name, roost.Exhausted, n, most)
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}
