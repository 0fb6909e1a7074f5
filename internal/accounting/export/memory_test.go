package export

import (
	"io"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/accountingtest"
	"github.com/roost-batch/roost/internal/accounting/sacct"
)

// TestMemory holds that the memory of an export does not grow with the number of records.
// It measures the heap early in each export and late in it.
func TestMemory(t *testing.T) {
	const (
		early, late = 5_000, 25_000
		most        = 256 << 10 // growth, in bytes; the 20,000 records between have 20 MB
	)
	usage := func(a iter.Seq2[accounting.AttemptRecord, error]) iter.Seq2[UsageWindow, error] {
		return UsageOf(a, usageHours)
	}
	trace := newTrace(t, borgOptions)
	for name, write := range map[string]func(iter.Seq2[accounting.AttemptRecord, error]) error{
		"csv": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			_, err := Attempts().WriteCSV(io.Discard, a)
			return err
		},
		"json lines": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			_, err := Attempts().WriteJSONLines(io.Discard, a)
			return err
		},
		"pbs": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			_, err := writePBS(io.Discard, PBSRecords{Ended: a}, time.UTC)
			return err
		},
		"borg events": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			return trace.WriteEvents(io.Discard, io.Discard, nil, a)
		},
		"borg usage": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			_, err := trace.WriteUsage(io.Discard, usage(a))
			return err
		},
		"swf": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			_, err := WriteSWF(io.Discard, a, swfOptions)
			return err
		},
		"xdmod": func(a iter.Seq2[accounting.AttemptRecord, error]) error {
			p, err := sacct.NewXDMoD(io.Discard, "pool")
			for r := range a {
				if err == nil {
					err = p.Print(&r)
				}
			}
			return err
		},
	} {
		heap := map[int]int64{}
		n := 0
		records := func(yield func(accounting.AttemptRecord, error) bool) {
			for a, err := range accountingtest.Random(1, late) {
				a.Job.Submitted = accountingtest.Begin
				a.Node = "node1.pool" // each machine has an entry in a bounded table
				if n++; n == early || n == late {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					heap[n] = int64(m.HeapAlloc)
				}
				if !yield(a, err) {
					return
				}
			}
		}
		if err := write(records); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if grown := heap[late] - heap[early]; heap[early] == 0 || grown > most {
			t.Errorf("%s: the heap grew by %d bytes in %d records", name, grown, late-early)
		}
	}
}
