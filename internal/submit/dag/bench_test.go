package dag

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// generatedFile is a DAG file that is written while it is read. It has the nodes first,
// and then for each node the line about its two children.
type generatedFile struct {
	nodes, next int
	buffer      []byte
	left        []byte
}

func (f *generatedFile) Read(to []byte) (int, error) {
	for len(f.left) == 0 {
		if f.next == 2*f.nodes {
			return 0, io.EOF
		}
		i := f.next % f.nodes
		line := f.buffer[:0]
		if f.next < f.nodes {
			line = append(strconv.AppendInt(append(line, "JOB node"...), int64(i), 10), " task.sub\n"...)
		} else {
			a, b := min(i+1, f.nodes-1), min(i+2+i%1000, f.nodes-1)
			line = strconv.AppendInt(append(line, "PARENT node"...), int64(i), 10)
			line = strconv.AppendInt(append(line, " CHILD node"...), int64(a), 10)
			line = append(strconv.AppendInt(append(line, " node"...), int64(b), 10), '\n')
			if i >= f.nodes-2 {
				line = append(line[:0], '\n')
			}
		}
		f.next++
		f.buffer, f.left = line, line
	}
	n := copy(to, f.left)
	f.left = f.left[n:]
	return n, nil
}

func (f *generatedFile) Close() error { return nil }

type generatedFiles struct{ nodes int }

func (f generatedFiles) Open(string) (io.ReadCloser, error) {
	return &generatedFile{nodes: f.nodes}, nil
}
func (f generatedFiles) Exists(string) bool { return true }

// BenchmarkParse measures the reading and checking of flows with two arcs for each node.
// The time of the CPU is measured, too, which means something on a busy machine.
func BenchmarkParse(b *testing.B) {
	for _, nodes := range []int{2000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			var before, after runtime.MemStats
			debug.FreeOSMemory()
			runtime.ReadMemStats(&before)
			b.ResetTimer()
			cpu := cpuSeconds()
			var flow *Flow
			for range b.N {
				flow = nil
				var diags *Diagnostics
				if flow, diags = Parse(generatedFiles{nodes}, []string{"x.dag"}, ParseOptions{}); len(diags.List) > 0 {
					b.Fatal(diags.List)
				}
			}
			b.StopTimer()
			b.ReportMetric((cpuSeconds()-cpu)/float64(b.N), "cpu-s/op")
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.Sys-after.HeapReleased)/1e6, "resident-MB")
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(nodes), "B/node")
			b.ReportMetric(float64(flow.Graph.Arcs()), "arcs")
			if s := flow.Graph.Statistics(); s.ByKind[graph.JobNode] != nodes {
				b.Fatalf("%+v", s)
			}
		})
	}
}

// cpuSeconds is the time of the CPU that the process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkRescue measures the writing and reading of a rescue file with a million lines.
func BenchmarkRescue(b *testing.B) {
	const nodes = 1_000_000
	flow, diags := Parse(generatedFiles{nodes}, []string{"x.dag"}, ParseOptions{})
	if diags.HasErrors() {
		b.Fatal(diags.List)
	}
	want := &Rescue{}
	for id := range flow.Graph.Nodes() {
		want.Done = append(want.Done, id)
	}
	for b.Loop() {
		var text strings.Builder
		if err := WriteRescue(&text, flow, want, RescueHeader{Flow: "x.dag"}); err != nil {
			b.Fatal(err)
		}
		got, diags := ReadRescue(textFiles{"r": text.String()}, "r", flow)
		if diags.HasErrors() || len(got.Done) != nodes {
			b.Fatal(len(got.Done), diags.List)
		}
	}
}
