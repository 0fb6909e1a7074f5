package reservation

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestReservationsAtOnce holds that of two users who want the same room only one gets it.
// That is so, too, where neither has seen the other's reservation.
func TestReservationsAtOnce(t *testing.T) {
	f := clitest.SampleJobs()
	dir := f.Serve(t)
	other := ledger.AdminCommand{Who: "bob@pool", Trusted: true, Verb: ledger.VerbSet, Kind: ledger.KindReservation,
		Object: []byte(
			`{"name": "R7", "users": ["bob"], "amount": {"cpus": 12}, "from": "2026-03-01T13:00:00Z", "until": "2026-03-01T14:00:00Z"}`,
		)}
	for _, c := range []struct {
		line      string
		meanwhile []ledger.AdminCommand
		code      int
	}{
		{"pbs_rsub -R 1300 -E 1400 -l ncpus=8", []ledger.AdminCommand{other}, pbsframe.TooMany},
		{"pbs_rdel R7", nil, 0},
		{"pbs_rsub -R 1300 -E 1400 -l ncpus=4", nil, 0},
		{"pbs_ralter -l select=1:ncpus=8 R1", []ledger.AdminCommand{other}, pbsframe.TooMany},
		{"pbs_rdel R7", nil, 0},
		{"pbs_ralter -l select=1:ncpus=8 R1", nil, 0},
	} {
		a, _, stderr := newReservationApp(t, dir)
		f.Mu.Lock()
		f.ConcurrentEvents = c.meanwhile
		f.Mu.Unlock()
		if code := a.Run(t.Context(), strings.Fields(c.line)); code != c.code {
			t.Errorf("%s: exit status %d, want %d; %s", c.line, code, c.code, stderr)
		}
	}
}
