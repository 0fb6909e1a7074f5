package negotiator

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
)

// TestSendQueueBoundedInBytes checks that what waits for a schedd that does not read is
// bounded in bytes. Its session ends, and no message after an omitted one is sent.
func TestSendQueueBoundedInBytes(t *testing.T) {
	b := newSendQueue()
	long := &wire.ToSchedd{Of: &wire.ToSchedd_Unplaced{
		Unplaced: &wire.Unplaced{Explanation: &wire.Explanation{Summary: string(make([]byte, 8<<20))}},
	}}
	for range 100 {
		b.putMessage(long)
	}
	b.putMessage(&wire.ToSchedd{})
	messages, _, ended := b.takeAll()
	if n := len(messages); n == 0 || n*proto.Size(long) > maxMailBytes || (n+1)*proto.Size(long) <= maxMailBytes {
		t.Errorf("%d messages wait", n)
	}
	if !errors.Is(ended, errQueueFull) {
		t.Errorf("the conversation ends with %v", ended)
	}
	for _, m := range messages {
		if m != long {
			t.Error("a message came after one that was left out")
		}
	}
}
