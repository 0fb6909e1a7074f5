package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/schedd/queue"
)

// steadyPool returns a pool of machines with 16 cores and four schedds. A job of ten
// tasks of a few minutes comes every second, from five users.
func steadyPool(machines, jobs int) SimulationConfig {
	r := eventloop.NewRand(1, 7)
	c := SimulationConfig{Seed: 1, Managers: 1, Schedds: 4, OnlyOnChange: true}
	for range machines {
		c.Machines = append(c.Machines,
			MachineConfig{Resources: roost.Resources{CPU: 16_000, Memory: 64 * roost.GiB, Disk: 100 * roost.GiB}})
	}
	var at time.Duration
	for i := range jobs {
		ad := classad.New()
		ad.SetInt(roost.AttrRequestCpus, 1)
		ad.SetInt(roost.AttrRequestMemory, 1024)
		j := JobConfig{At: at, Schedd: i % c.Schedds, Owner: fmt.Sprintf("user%d", i%5),
			Spec: queue.SubmitSpec{Ad: ad, Count: 10}}
		for range j.Spec.Count {
			j.Runtimes = append(j.Runtimes, max(r.LogNormal(10*time.Minute, 1.2), time.Millisecond))
		}
		c.Jobs = append(c.Jobs, j)
		at += r.Exponential(time.Second)
	}
	return c
}

// BenchmarkEvents simulates pools of several sizes and reports events per second.
func BenchmarkEvents(b *testing.B) {
	for _, size := range []struct{ machines, jobs int }{{100, 100}, {1000, 2000}} {
		b.Run(fmt.Sprintf("machines=%d", size.machines), func(b *testing.B) {
			events := uint64(0)
			for b.Loop() {
				p, err := New(steadyPool(size.machines, size.jobs))
				if err != nil {
					b.Fatal(err)
				}
				if !p.RunToEnd(365 * 24 * time.Hour) {
					b.Fatal("not all jobs are over")
				}
				events += p.Events()
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(events)/float64(b.N), "events/op")
		})
	}
}
