package criu

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/checkpoint/image"
)

// benchBytes is the memory of the benchmark's task in bytes.
const benchBytes = 200 << 20

// holdMemory is a program that allocates memory and reports when it has. Half of each
// page is random, the other half is text.
func holdMemory([]string) error {
	memory, random, text := make([]byte, benchBytes), rand.NewChaCha8([32]byte{1}),
		strings.Repeat("so many lines of a table, ", 80)
	for page := range slices.Chunk(memory, 4096) {
		random.Read(page[:2048])
		copy(page[2048:], text)
	}
	fmt.Println("held")
	<-time.After(time.Hour)
	fmt.Println(memory[0])
	return nil
}

// BenchmarkHeld200MB takes a checkpoint of a task with 200 MB in memory, packs it, ends
// the task and restores it. The targets are in the units: the task is frozen for at most
// 500 ms, and restored in at most 500 ms.
func BenchmarkHeld200MB(b *testing.B) {
	x := newTestSandbox(b, 0, "")
	x.program = "exec " + x.copyTestBinary() + " hold"
	x.start()
	x.waitUntil("memory held", func() bool { return x.output() != "" })
	var frozen, total, packed, restored []float64
	var images, file int64
	for n := 0; b.Loop(); n++ {
		dir, r := x.dump(fmt.Sprint("image", n))
		frozen, total, images = append(frozen, ms(r.Frozen)), append(total, ms(r.Total)), r.Bytes
		x.kill()
		began := time.Now()
		sum, err := image.WriteDirectory(io.Discard, dir, image.Header{Job: "1.host"}, make([]byte, image.KeySize))
		if err != nil {
			b.Fatal(err)
		}
		packed, file = append(packed, ms(time.Since(began))), sum.Size
		restored = append(restored, ms(x.restore(dir).Total))
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	x.kill()
	b.ReportMetric(0, "ns/op") // the figures below measure its parts
	b.ReportMetric(median(frozen), "ms-frozen(aim:500)")
	b.ReportMetric(median(total), "ms-dump")
	b.ReportMetric(median(packed), "ms-pack")
	b.ReportMetric(median(restored), "ms-restore(aim:500)")
	b.ReportMetric(float64(images)/1e6, "MB-dumped")
	b.ReportMetric(float64(file)/1e6, "MB-image")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
