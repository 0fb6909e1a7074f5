package rpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	pb "google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
)

// codec refuses what is too long for its type before it is parsed.
type codec struct {
	encoding.CodecV2
	bounds  bounded
	refused *told
}

func newCodec(refused *told) codec { return codec{encoding.GetCodecV2(proto.Name), bounds(), refused} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(pb.Message); ok {
		name := m.ProtoReflect().Descriptor().FullName()
		if most, n := c.bounds.most[name], data.Len(); most > 0 && n > most {
			c.refused.tell("refused a message that is too long", string(name), "bytes", n, "most", most)
			return fmt.Errorf("%s: %w: %d bytes, and %d is the most", name, roost.Exhausted, n, most)
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}
