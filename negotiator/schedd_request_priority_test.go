package negotiator

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPriorityOfLyingSchedd checks that no request has a priority that no job may have.
// Nor do more units have it than are wanted.
func TestPriorityOfLyingSchedd(t *testing.T) {
	for _, test := range []struct{ sent, want int32 }{
		{1_000_000_000, roost.MaxPriority}, {-1_000_000_000, roost.MinPriority}, {7, 7},
	} {
		s := &scheddState{name: "s", requests: map[uint64]*scheddRequest{}}
		if err := s.updateRequest(&wire.RequestUpdate{Id: 1, Owner: "eve", Wanted: 2, AtPriority: 1 << 31,
			Priority: test.sent, Resources: &wire.Resources{MilliCpu: 1000}}); err != nil {
			t.Fatal(err)
		}
		if r := s.requests[1]; r.Priority != test.want || r.atPriority != 2 {
			t.Fatalf("priority %d becomes %d, with %d of 2 units", test.sent, r.Priority, r.atPriority)
		}
	}
}
