package startd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
)

// BenchmarkFreeze measures from the guard's word to the startd's that all tasks stand
// still, while they keep the machine busy. The aim, with what the guard itself takes to
// notice, is 250 ms for 99 of 100.
func BenchmarkFreeze(b *testing.B) {
	for _, grouped := range []bool{true, false} {
		for _, tasks := range []int{1, 16, 50} {
			how := "groups"
			if !grouped {
				how = "signals"
			}
			b.Run(fmt.Sprintf("%s/tasks=%d", how, tasks), func(b *testing.B) { benchFreeze(b, tasks, grouped) })
		}
	}
}

func benchFreeze(b *testing.B, tasks int, grouped bool) {
	before, g := withFakeGuard(b, time.Hour)
	p := newTestStartdWith(b, func(p *testStartd) {
		before(p)
		own := &p.node.Startds[0]
		own.Resources = roost.Resources{CPU: 64000, Memory: 64 * roost.GiB, Disk: roost.GiB}
		if !grouped {
			own.Limits.Enforce = config.EnforceNever
		}
	})
	p.awaitAvailable()
	s := p.connect("host1", 1)
	for range tasks {
		claim := s.requestClaim(func(r *wire.ClaimRequest) {
			r.Resources, r.LeaseS = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20}, 3600
		}).GetClaim()
		s.awaitStarted(s.activate(claim, s.shell("while [ ! -e go ]; do sleep 0.2; done; while :; do :; done"), false))
	}
	go func() {
		for range s.messages { // nobody reads them here
		}
	}()
	in := func(state string) func(*wire.GuardReport) bool {
		return func(r *wire.GuardReport) bool {
			n := 0
			for _, taskEntry := range r.GetTenants() {
				if taskEntry.GetState() == state {
					n++
				}
			}
			return n == tasks
		}
	}
	g.awaitReport("runs all", in("running"))
	if err := os.WriteFile(filepath.Join(p.node.Dir, "go"), nil, 0o644); err != nil {
		b.Fatal(err)
	}
	waitBriefly(time.Second)
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		waitBriefly(50 * time.Millisecond) // until they are at it again
		b.StartTimer()
		began := time.Now()
		g.awaitActed(g.pressKey())
		took = append(took, time.Since(began))
		b.StopTimer()
		g.awaitReport("has stopped all", in("suspended"))
		g.away()
		g.awaitReport("runs all again", in("running"))
		b.StartTimer()
	}
	slices.Sort(took)
	ms := func(part float64) float64 { return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(ms(0.5), "ms-p50")
	b.ReportMetric(ms(0.99), "ms-p99(aim:250)")
	b.ReportMetric(ms(1), "ms-max")
	b.ReportMetric(0, "ns/op")
}
