package match

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// benchCell is a cell of machines of ten kinds. Its request classes belong to ten users
// and share the tasks equally.
func benchCell(b *testing.B, machines, classes, tasks int) *Snapshot {
	s := &Snapshot{Backfill: BackfillSettings{Mode: EASYBackfill}}
	for i := range machines {
		s.Machines = append(s.Machines, benchMachine(b, i, 1))
	}
	for i := range classes {
		who := fairshare.Submitter{Owner: fmt.Sprintf("user%d", i%10)}
		r := roost.Resources{CPU: roost.MilliCPU(i%4+1) * 1000, Memory: roost.Bytes(i%7+1) * roost.GiB}
		text := fmt.Sprintf(
			`[Requirements = TARGET.Arch == "X86_64" && TARGET.Generation >= %d; Rank = TARGET.Generation]`, i%5,
		)
		class, err := NewClass(text, who, roost.BatchBand, r)
		if err != nil {
			b.Fatal(err)
		}
		s.Requests = append(s.Requests, &Request{
			Key: RequestKey{"s", uint64(i)}, Submitter: who, Band: roost.BatchBand, Oldest: int64(i),
			Wanted: tasks / classes, Class: class, Explain: i < 4,
		})
	}
	return s
}

func benchMachine(b *testing.B, i int, sequence uint64) *Machine {
	total := roost.Resources{CPU: 16000, Memory: 64 * roost.GiB, Disk: roost.TiB}
	free := total
	free.CPU -= roost.MilliCPU(i%4) * 1000
	name := fmt.Sprintf("node%06d", i)
	exprs := fmt.Sprintf(
		`Arch = "X86_64"; OpSys = "LINUX"; Generation = %d; LoadAvg = %d.5; Start = TARGET.RequestCpus <= TotalCpus; Requirements = Start`, i%10, i,
	)
	return NewMachine(name, 1, sequence, machineAd(b, name, total, free, exprs))
}

// benchSizes returns small and usual cells, with ten tasks for each machine. Larger cells
// are measured by make bench.
func benchSizes() (all []benchSize) {
	for _, machines := range []int{1000, 10_000} {
		for _, classes := range []int{1, 100, 1000} {
			all = append(all, benchSize{machines, classes, 10 * machines})
		}
	}
	return all
}

type benchSize struct{ machines, classes, tasks int }

// BenchmarkScratch plans with a new matcher, and with machines and classes that no
// matcher has seen.
func BenchmarkScratch(b *testing.B) {
	for _, size := range benchSizes() {
		b.Run(fmt.Sprintf("%dx%d", size.machines, size.classes), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := benchCell(b, size.machines, size.classes, size.tasks)
				runtime.GC()
				b.StartTimer()
				plan := NewMatcher().Plan(s)
				b.StopTimer()
				units := 0
				for _, g := range plan.Grants {
					units += g.Units
				}
				b.ReportMetric(float64(units), "placed/op")
				b.StartTimer()
			}
		})
	}
}

// BenchmarkChange plans after one machine has changed, in a cell whose other machines are
// full.
func BenchmarkChange(b *testing.B) {
	for _, size := range benchSizes() {
		b.Run(fmt.Sprintf("%dx%d", size.machines, size.classes), func(b *testing.B) {
			s, matcher := benchCell(b, size.machines, size.classes, size.tasks), NewMatcher()
			for _, m := range s.Machines {
				m.Free = roost.Resources{}
			}
			for _, r := range s.Requests {
				r.Explain = false
			}
			matcher.Plan(s)
			sequence := uint64(1)
			for b.Loop() {
				sequence++
				s.Machines[0] = benchMachine(b, 0, sequence)
				matcher.Plan(s)
			}
		})
	}
}

// BenchmarkExplain explains why one class of many waits, in a full cell.
func BenchmarkExplain(b *testing.B) {
	for _, size := range benchSizes() {
		b.Run(fmt.Sprintf("%dx%d", size.machines, size.classes), func(b *testing.B) {
			s, matcher := benchCell(b, size.machines, size.classes, size.tasks), NewMatcher()
			for _, m := range s.Machines {
				m.Free = roost.Resources{}
			}
			for _, r := range s.Requests {
				r.Explain = false
			}
			matcher.Plan(s)
			s.Requests[0].Explain = true
			for b.Loop() {
				matcher.Plan(s)
			}
		})
	}
}

// preemptCell is a cell full of claims of one core each, half in band free and half in
// batch. Its requests are production.
func preemptCell(b *testing.B, machines, classes int) *Snapshot {
	s := &Snapshot{Now: time.Unix(1_000_000, 0)}
	for i := range machines {
		s.Machines = append(s.Machines, fullMachine(b, i, 1))
	}
	for i := range classes {
		who := fairshare.Submitter{Owner: fmt.Sprintf("user%d", i%10)}
		class, err := NewClass("[]", who, roost.ProductionBand,
			roost.Resources{CPU: roost.MilliCPU(i%4+1) * 1000, Memory: roost.GiB})
		if err != nil {
			b.Fatal(err)
		}
		s.Requests = append(s.Requests, &Request{Key: RequestKey{"s", uint64(i)}, Submitter: who,
			Band: roost.ProductionBand, Wanted: max(1, machines/classes), Class: class})
	}
	return s
}

func fullMachine(b *testing.B, i int, sequence uint64) *Machine {
	total := roost.Resources{CPU: 16000, Memory: 64 * roost.GiB, Disk: roost.TiB}
	var claims strings.Builder
	for k := range 16 {
		fmt.Fprintf(&claims,
			`[Id = %d; Owner = "o"; Band = "%v"; Cpus = 1; Memory = 4096; Since = %d; Job = "%d[0].s"],`, k+1,
			roost.PriorityBand(k%2), 1_000_000-(i*k)%5000, k)
	}
	free := roost.Resources{Disk: total.Disk}
	ad := machineAd(b, fmt.Sprintf("node%06d", i), total, free,
		"Claims = {"+strings.TrimSuffix(claims.String(), ",")+"}")
	return NewMachine(fmt.Sprintf("node%06d", i), 1, sequence, ad)
}

// BenchmarkPreempt evicts claims for as many production units as there are machines, in a
// full cell.
func BenchmarkPreempt(b *testing.B) {
	for _, size := range []benchSize{{1000, 10, 0}, {10_000, 1, 0}, {10_000, 100, 0}} {
		b.Run(fmt.Sprintf("%dx%d", size.machines, size.classes), func(b *testing.B) {
			s := preemptCell(b, size.machines, size.classes)
			for b.Loop() {
				grants := len(NewMatcher().Plan(newMatcherCopy(s)).Grants)
				b.ReportMetric(float64(grants), "grants/op")
			}
		})
	}
}

// BenchmarkNoVictims plans after one machine has changed, while production requests wait
// that no eviction can help.
func BenchmarkNoVictims(b *testing.B) {
	s, matcher := preemptCell(b, 10_000, 100), NewMatcher()
	for _, r := range s.Requests {
		class, err := NewClass("[]", r.Submitter, roost.ProductionBand,
			roost.Resources{CPU: 16000, Memory: 65 * roost.GiB})
		if err != nil {
			b.Fatal(err)
		}
		r.Class = class
	}
	matcher.Plan(s)
	sequence := uint64(1)
	for b.Loop() {
		sequence++
		s.Machines[0] = fullMachine(b, 0, sequence)
		matcher.Plan(s)
	}
}
