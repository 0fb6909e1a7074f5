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
			_, err := WritePBS(io.Discard, PBSRecords{Ended: a}, time.UTC)
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

// fixedReader is a store of the sample that remembers the selections.
type fixedReader struct {
	accounting.Reader
	selections []accounting.Selection
}

func (r *fixedReader) Jobs(s accounting.Selection) iter.Seq2[accounting.JobEntry, error] {
	r.selections = append(r.selections, s)
	return accountingtest.Rows(jobsOf(accountingtest.Sample()))
}

func (r *fixedReader) Attempts(s accounting.Selection) iter.Seq2[accounting.AttemptRecord, error] {
	r.selections = append(r.selections, s)
	return accountingtest.Rows(accountingtest.Sample()[:1])
}

// TestReadPBSRecords reads each kind of record by its time.
func TestReadPBSRecords(t *testing.T) {
	store := &fixedReader{}
	day := accounting.TimeRange{From: accountingtest.Begin, To: accountingtest.Begin + 24*3600_000}
	records := ReadPBSRecords(store, day, accounting.Filter{Owner: "ann"})
	n, err := WritePBS(io.Discard, records, time.UTC)
	if want := int64(len(jobsOf(accountingtest.Sample()))) + 2; n != want || err != nil {
		t.Errorf("%d records (%v), want %d", n, err, want)
	}
	for i, by := range []accounting.TimeField{accounting.BySubmit, accounting.ByStart, accounting.ByEnd} {
		if s := store.selections[i]; s.By != by || s.Range != day || s.Filter.Owner != "ann" || s.Descending {
			t.Errorf("selection %d: %+v", i, s)
		}
	}
}
