package classad

import (
	"fmt"
	"testing"
)

// benchTable returns a table of machines. They are of a few kinds, with free amounts of
// their own and a policy that asks five things of a job.
func benchTable(tb testing.TB, machines int) (*Table, []*Ad) {
	machine, err := Parse(machineText())
	if err != nil {
		tb.Fatal(err)
	}
	table := NewTable(TableOptions{})
	ads := make([]*Ad, machines)
	for i := range ads {
		ads[i] = poolMachine(machine, i, i%100)
		table.Add(ads[i])
	}
	return table, ads
}

func poolMachine(machine *Ad, i, load int) *Ad {
	ad := machine.Copy()
	ad.SetString("Name", fmt.Sprintf("slot1@node%06d", i))
	ad.SetInt("Cpus", int64(1+i%16))
	ad.SetInt("Memory", int64(2000*(1+i%64)))
	ad.SetInt("Gpus", int64(i%3))
	ad.SetReal("LoadAvg", float64(load)/100)
	if i%10 == 0 {
		ad.SetString("Arch", "aarch64")
	}
	return ad
}

// selective is a request that few machines meet; common is one that most meet.
const selective = `[ RequestCpus = 12; RequestMemory = 100000; RequestGpus = 2; Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX" && ` +
	`TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus && TARGET.Gpus >= RequestGpus; Rank = TARGET.Memory ]`

const common = `[ RequestCpus = 1; RequestMemory = 1000; RequestGpus = 0; Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX" && ` +
	`TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus && TARGET.Gpus >= RequestGpus; Rank = TARGET.Memory ]`

// BenchmarkSelect matches one request with all machines of a pool, with both sides'
// requirements and the rank. The result to watch is ns/machine.
func BenchmarkSelect(b *testing.B) {
	for _, machines := range []int{10_000, 100_000} {
		table, _ := benchTable(b, machines)
		for _, job := range []struct{ name, text string }{{"selective", selective}, {"common", common}} {
			b.Run(fmt.Sprintf("%s/%d", job.name, machines), func(b *testing.B) {
				ad, err := Parse(job.text)
				if err != nil {
					b.Fatal(err)
				}
				q := table.Compile(ad)
				q.unindexed = true
				hits := q.Select(make([]QueryHit, 0, machines), nil)
				b.ReportAllocs()
				for b.Loop() {
					hits = q.Select(hits[:0], nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(machines), "ns/machine")
				b.ReportMetric(float64(len(hits)), "hits")
			})
		}
	}
}

// BenchmarkSelectIndexed is BenchmarkSelect with indexes, for a request that few machines
// match.
func BenchmarkSelectIndexed(b *testing.B) {
	for _, machines := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) {
			table, _ := benchTable(b, machines)
			ad, err := Parse(
				`[ RequestMemory = 1000; Requirements = TARGET.Name == "slot1@node004242" && TARGET.Memory > 0 ]`,
			)
			if err != nil {
				b.Fatal(err)
			}
			q := table.Compile(ad)
			hits := make([]QueryHit, 0, machines)
			for range 10 {
				hits = q.Select(hits[:0], nil)
			}
			if len(hits) != 1 {
				b.Fatalf("%d hits", len(hits))
			}
			b.ReportAllocs()
			for b.Loop() {
				hits = q.Select(hits[:0], nil)
			}
		})
	}
}

// BenchmarkSet updates the table for a machine that has changed, whose ad is already
// parsed.
func BenchmarkSet(b *testing.B) {
	table, ads := benchTable(b, 10_000)
	for _, text := range []string{selective,
		`[ Requirements = TARGET.LoadAvg < 0.3 && TARGET.Name != "" && TARGET.Disk > 0 ]`} {
		ad, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		table.Compile(ad).Select(nil, nil)
	}
	var changed [2]*Ad
	for i := range changed {
		changed[i] = poolMachine(ads[5000], 5000, 17*i)
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		table.Set(5000, changed[i&1])
	}
}

// BenchmarkCompile compiles a request for a table that has the columns.
func BenchmarkCompile(b *testing.B) {
	table, _ := benchTable(b, 1000)
	ad, err := Parse(selective)
	if err != nil {
		b.Fatal(err)
	}
	table.Compile(ad).Select(nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		q := table.Compile(ad)
		q.update(nil)
	}
}

// BenchmarkExplain counts the conditions that exclude a request from 10,000 machines.
func BenchmarkExplain(b *testing.B) {
	table, _ := benchTable(b, 10_000)
	ad, err := Parse(selective)
	if err != nil {
		b.Fatal(err)
	}
	q := table.Compile(ad)
	for b.Loop() {
		q.Explain(nil)
	}
}

// BenchmarkSelectByTree does the same as BenchmarkSelect by evaluating trees.
func BenchmarkSelectByTree(b *testing.B) {
	_, ads := benchTable(b, 10_000)
	ad, err := Parse(common)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, machine := range ads {
			Match(ad, machine, nil)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ads)), "ns/machine")
}
