package startd

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// TestAskedCause checks which causes a schedd may give, by their numbers on the wire.
// With any other number the attempt ends as removed.
func TestAskedCause(t *testing.T) {
	may := map[wire.Cause]slot.EndCause{
		wire.Cause_CAUSE_VACATED: slot.Vacated, wire.Cause_CAUSE_PREEMPTED: slot.Preempted,
		wire.Cause_CAUSE_MACHINE: slot.Machine, wire.Cause_CAUSE_CPU_TIME: slot.CPUOverused,
	}
	for n := int32(-1); n < 600; n++ { // beyond what a slot.EndCause can be
		want, ok := may[wire.Cause(n)]
		if !ok {
			want = slot.Removed
		}
		if got := slot.CauseFromWire(n); got != want {
			t.Errorf("%v: got %d, want %d", wire.Cause(n), got, want)
		}
	}
	if wire.Cause(slot.Removed) != wire.Cause_CAUSE_REMOVED {
		t.Errorf("the cause of a user's will is %v on the wire", wire.Cause(slot.Removed))
	}
}
