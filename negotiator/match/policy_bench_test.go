package match

import (
	"runtime"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// BenchmarkPolicies plans a cell anew under each policy of a site. It states what a
// policy costs beside the default, which is first.
func BenchmarkPolicies(b *testing.B) {
	for _, policy := range []struct {
		name string
		set  func(s *Snapshot)
	}{
		{"default", func(*Snapshot) {}},
		{"best-fit", func(s *Snapshot) { s.Score = BestFit }},
		{"worst-fit", func(s *Snapshot) { s.Score = WorstFit }},
		{"least-loaded", func(s *Snapshot) { s.Score = LeastLoaded }},
		{"mix-bands", func(s *Snapshot) { s.MixBands = true }},
		{"failure-domains", func(s *Snapshot) { s.FailureDomains = []string{"Generation", "Name"} }},
		{"defragment", func(s *Snapshot) { s.Preemption.Moves = &MovePolicy{MinWait: time.Minute} }},
	} {
		b.Run(policy.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := benchCell(b, 1000, 100, 10_000)
				for i, r := range s.Requests {
					if i%4 == 0 { // failure domains are of production
						r.Band = roost.ProductionBand
					}
				}
				policy.set(s)
				runtime.GC()
				b.StartTimer()
				NewMatcher().Plan(s)
			}
		})
	}
}
