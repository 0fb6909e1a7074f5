package startd

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPilotAccount checks whose tasks a pilot accepts, and which of them.
func TestPilotAccount(t *testing.T) {
	owner := roost.PilotOwner{User: "ada", Schedd: "login1"}
	hour := &config.PilotSettings{Owner: owner, Until: time.Now().Add(time.Hour)}
	for name, tt := range map[string]struct {
		pilot            *config.PilotSettings
		user, schedd, ad string
		refusal          string
	}{
		"its owner's":         {hour, "ada", "login1", "[Walltime = 3000]", ""},
		"another's":           {hour, "eve", "login1", "[Walltime = 3000]", "pilot of ada@login1"},
		"from another node":   {hour, "ada", "login2", "[Walltime = 3000]", "pilot of ada@login1"},
		"too long":            {hour, "ada", "login1", "[Walltime = 3700]", "ends in"},
		"for ever":            {hour, "ada", "login1", "[]", "ends in"},
		"no ad":               {hour, "ada", "login1", "", "ends in"},
		"for ever, as it may": {&config.PilotSettings{Owner: owner}, "ada", "login1", "[]", ""},
	} {
		got := pilotAccount(tt.pilot, tt.schedd, &wire.ClaimRequest{Owner: tt.user, Ad: tt.ad})
		if (got.err == nil) != (tt.refusal == "") || got.err != nil && !strings.Contains(got.err.Error(), tt.refusal) {
			t.Errorf("%s: got %v, want %q", name, got.err, tt.refusal)
		}
	}
}

func TestPilotLife(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		life   pilotLife
		claims map[int]int // by second: from then on
		end    int         // in seconds; -1: never
	}{
		"idle from the first":      {pilotLife{idle: 5 * time.Second}, nil, 5},
		"waits for the first task": {pilotLife{idle: 5 * time.Second, firstIdle: 20 * time.Second}, nil, 20},
		"after the first task": {pilotLife{idle: 5 * time.Second, firstIdle: 20 * time.Second},
			map[int]int{10: 1, 12: 0}, 16},
		"a short task": {pilotLife{idle: 5 * time.Second, firstIdle: 20 * time.Second}, map[int]int{10: -1}, 15},
		"busy":         {pilotLife{idle: 5 * time.Second}, map[int]int{3: 2}, -1},
		"busy until the end": {pilotLife{idle: 5 * time.Second, until: start.Add(30 * time.Second)},
			map[int]int{3: 2}, 30},
		"no limit":                   {pilotLife{}, nil, -1},
		"idle limit above the first": {pilotLife{idle: 9 * time.Second, firstIdle: 5 * time.Second}, nil, 9},
	} {
		life, claims, end := tt.life, 0, -1
		life.since = start
		lastClaim := time.Time{}
		for s := range 60 {
			if n, ok := tt.claims[s]; ok {
				claims = max(n, 0)
				if n != 0 { // below 0: it has come and gone already
					lastClaim = start.Add(time.Duration(s) * time.Second)
				}
			}
			if life.endReason(start.Add(time.Duration(s)*time.Second), claims, lastClaim) != "" {
				end = s
				break
			}
		}
		if end != tt.end {
			t.Errorf("%s: it ends after %d s, want %d", name, end, tt.end)
		}
	}
}
