package metrics

import (
	"testing"
	"time"
)

// BenchmarkCount measures what the end of an attempt costs a schedd's loop: three
// counters and a histogram, exported or not.
func BenchmarkCount(b *testing.B) {
	for name, r := range map[string]*Registry{"off": nil, "on": NewRegistry("schedd")} {
		s := NewSchedd(r, b.TempDir())
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.AttemptsEnded.Inc(1, 0)
				s.RunTime.Observe(90*time.Second, 1)
				s.UsefulSeconds.AddSeconds(90 * time.Second)
				s.LostSeconds.AddSeconds(0, 3)
			}
		})
	}
}
