package schedd

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestRightsAreRenewed checks that rights are renewed long before they expire. That is at
// the beginning of each session and then once in the interval.
func TestRightsAreRenewed(t *testing.T) {
	n := &startdSession{}
	var renewed []time.Duration
	for now := time.Duration(0); now < 3*rightInterval; now += time.Minute {
		if n.rightsDue(roost.BootTime(now)) {
			renewed = append(renewed, now)
		}
	}
	if len(renewed) != 3 || renewed[0] != 0 || renewed[2] != 2*rightInterval {
		t.Errorf("renewed at %v", renewed)
	}
	if rightInterval >= rightReserve {
		t.Error("a right can expire before the lease of an attempt whose schedd is away")
	}
	if !(&startdSession{}).rightsDue(roost.BootTime(time.Minute)) {
		t.Error("a new session does not renew the rights")
	}
}
