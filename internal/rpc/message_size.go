package rpc

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
)

// CheckDeliverable returns why a message cannot be sent. Either its receiver accepts no
// message of that length, or it contains what protobuf cannot carry, such as a name that
// is not UTF-8. A stream ends at the first such message, with everything else on it. A
// sender of messages with contents from others calls this before it sends, and fails only
// the object of the message.
func CheckDeliverable(m proto.Message) error {
	if err := CheckSize(m); err != nil {
		return err
	}
	if _, err := proto.Marshal(m); err != nil {
		return fmt.Errorf("%s: %w: %w", m.ProtoReflect().Descriptor().FullName(), roost.Invalid, err)
	}
	return nil
}

// CheckSize returns an error if a message is longer than its receiver accepts.
func CheckSize(m proto.Message) error {
	name := m.ProtoReflect().Descriptor().FullName()
	most := requestLimits().maxBytes[name]
	if most == 0 {
		most = maxReplySize
	}
	if size := proto.Size(m); size > most {
		return fmt.Errorf("%s: %w: it has %d bytes, and %d is the most", name, roost.Exhausted, size, most)
	}
	return nil
}

// requestLimits returns the limits on messages to a server. They are computed once.
var requestLimits = sync.OnceValue(newMethodLimits)

// PartLen returns how many entries of a list go into one message. Together they have at
// most PartSize bytes, but there is at least one.
func PartLen[M proto.Message](list []M) int {
	size := 0
	for i, m := range list {
		if size += proto.Size(m); size > PartSize && i > 0 {
			return i
		}
	}
	return len(list)
}
