package rpc

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
)

// CheckDeliverable says why a message cannot be sent: its receiver takes no message of
// that length, or the wire cannot carry what is in it, such as a name that is not UTF-8.
// A stream ends with the first message that it cannot carry, and takes with it what has
// nothing to do with that message. Whoever makes messages of what others wrote asks here
// before it sends, and ends what the message is about instead.
func CheckDeliverable(m proto.Message) error {
	if err := CheckSize(m); err != nil {
		return err
	}
	if _, err := proto.Marshal(m); err != nil {
		return fmt.Errorf("%s: %w: %w", m.ProtoReflect().Descriptor().FullName(), roost.Invalid, err)
	}
	return nil
}

// CheckSize says whether a message is longer than its receiver takes.
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

// requestLimits are the bounds on what a server takes. They are found once.
var requestLimits = sync.OnceValue(newMethodLimits)

// PartLen reports how many of a list go into one message: as many as have PartSize bytes
// together, and one at least.
func PartLen[M proto.Message](list []M) int {
	size := 0
	for i, m := range list {
		if size += proto.Size(m); size > PartSize && i > 0 {
			return i
		}
	}
	return len(list)
}
