package startd

import (
	"testing"
	"time"
)

func TestPilotLife(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for name, tt := range map[string]struct {
		life   pilotLife
		claims map[int]int // by second: from then on
		end    int         // in seconds; -1: never
	}{
		"idle from the first":       {pilotLife{idle: 5 * time.Second}, nil, 5},
		"waits for the first task":  {pilotLife{idle: 5 * time.Second, firstIdle: 20 * time.Second}, nil, 20},
		"after the first task":      {pilotLife{idle: 5 * time.Second, firstIdle: 20 * time.Second}, map[int]int{10: 1, 12: 0}, 16},
		"busy":                      {pilotLife{idle: 5 * time.Second}, map[int]int{3: 2}, -1},
		"busy until the end":        {pilotLife{idle: 5 * time.Second, until: start.Add(30 * time.Second)}, map[int]int{3: 2}, 30},
		"no limit":                  {pilotLife{}, nil, -1},
		"idle limit above the first": {pilotLife{idle: 9 * time.Second, firstIdle: 5 * time.Second}, nil, 9},
	} {
		life, claims, end := tt.life, 0, -1
		life.since = start
		for s := range 60 {
			if n, ok := tt.claims[s]; ok {
				claims = n
			}
			if life.endReason(start.Add(time.Duration(s)*time.Second), claims) != "" {
				end = s
				break
			}
		}
		if end != tt.end {
			t.Errorf("%s: it ends after %d s, want %d", name, end, tt.end)
		}
	}
}
