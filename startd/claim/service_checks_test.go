package claim

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// TestCheckBounds checks that a command may take longer than its interval, within reason,
// and no other check.
func TestCheckBounds(t *testing.T) {
	for kind, want := range map[wire.HealthCheck_Kind]time.Duration{
		wire.HealthCheck_KIND_EXEC: 5 * time.Second,
		wire.HealthCheck_KIND_HTTP: time.Second,
		wire.HealthCheck_KIND_TCP:  time.Second,
	} {
		for _, timeout := range []time.Duration{5 * time.Second, time.Hour} {
			got := healthChecks(&wire.ServiceProgram{Checks: []*wire.HealthCheck{{Name: "up", Kind: kind,
				EveryNs: int64(time.Second), TimeoutNs: int64(timeout)}}})
			if len(got) != 1 || got[0].Timeout != want {
				t.Errorf("%v of %v: got %+v, want a timeout of %v", kind, timeout, got, want)
			}
		}
	}
}
