package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/accountingtest"
	"github.com/roost-batch/roost/internal/sim/trace"
)

var swfOptions = SWFOptions{
	Computer: "pool", Installation: "Institute of\nPhysics", Window: accounting.TimeRange{From: accountingtest.Begin,
		To: accountingtest.Begin + 24*3600_000}, Zone: "Europe/Berlin", MaxJobs: 21, MaxNodes: 10, MaxProcs: 640,
	Queues: []string{"long", "batch"},
}

// endedAttempts are the attempts of the sample that ended, in the order of submission.
func endedAttempts() []*accounting.AttemptRecord {
	return slices.DeleteFunc(accountingtest.Sample(), func(a *accounting.AttemptRecord) bool { return a.Ended == 0 })
}

// TestSWF writes the sample, and reads it with the reader of the simulator.
func TestSWF(t *testing.T) {
	rows := accountingtest.Sample()
	rows[1].Job.Owner, rows[1].Class = "bob", "desktop"
	var b bytes.Buffer
	n, err := WriteSWF(&b, accountingtest.Rows(rows), swfOptions)
	if err != nil {
		t.Fatal(err)
	}
	accountingtest.CheckGolden(t, "swf.txt", b.Bytes())
	log, err := trace.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := endedAttempts()
	if len(log.Jobs) != len(want) || n != int64(len(want)) {
		t.Fatalf("%d lines of %d, want %d", len(log.Jobs), n, len(want))
	}
	for i, j := range log.Jobs {
		a := want[i]
		procs := int64(a.Held.CPU+999) / 1000
		user := int64(1)
		if i == 1 {
			user = 2
		}
		status := int64(0)
		switch {
		case a.Cause == accounting.EndedExit && a.ExitCode == 0:
			status = 1
		case a.Cause == accounting.EndedRemoval:
			status = 5
		}
		preceding := int64(-1)
		if a.Attempt > 1 {
			preceding = int64(i)
		}
		got := []int64{j.ID, j.Submit, j.Wait, j.RunTime, j.Processors, j.CPU, j.Memory, j.RequestedMemory, j.Status,
			j.User, j.Queue, j.Partition, j.PrecedingJob}
		expected := []int64{int64(i) + 1, 10, int64(a.Started-a.Job.Submitted+500) / 1000, (a.Wall + 500) / 1000, procs,
			(a.UserCPU + a.SystemCPU) / 1000 / procs, (int64(a.Peak.Memory)/1024 + 1) / procs,
			int64(a.Job.Request.Memory) / 1024 / 2, status, user, 2, user, preceding}
		if !slices.Equal(got, expected) {
			t.Errorf("line %d:\n%v, want\n%v", i+1, got, expected)
		}
	}
	for name, want := range map[string]string{"Version": "2.2", "UnixStartTime": "1793491200", "MaxProcs": "640",
		"Installation": "Institute of Physics", "Queue": "2 batch", "EndTime": "Mon Nov 02 00:00:00 UTC 2026"} {
		if got := log.Header(name); got != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
}

// TestSWFErrors returns the errors of records and of writers.
func TestSWFErrors(t *testing.T) {
	rows := endedAttempts()
	rows[0].Job.Submitted += 5
	if _, err := WriteSWF(io.Discard, accountingtest.Rows(rows), swfOptions); !errors.Is(err, roost.Invalid) {
		t.Errorf("records out of order: %v", err)
	}
	broken := errors.New("disk full")
	_, err := WriteSWF(failingWriter{broken}, accountingtest.Rows(endedAttempts()), swfOptions)
	if !errors.Is(err, broken) {
		t.Errorf("an error of the writer: %v", err)
	}
}

// FuzzSWF holds that any record is a line that the simulator reads, and that no name of a
// user shows.
func FuzzSWF(f *testing.F) {
	for _, name := range accountingtest.OddNames() {
		f.Add(name, int64(accountingtest.Begin), int64(1))
	}
	f.Add("x", int64(-1<<63), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, name string, a, b int64) {
		row := accountingtest.WithNames(name)
		row.Job.Owner = "secret" + name
		row.Job.Submitted, row.Started, row.Wall, row.Job.Walltime = accounting.Millis(a), accounting.Millis(b), a, b
		row.Held.CPU, row.Job.Request.CPU, row.Peak.Memory = roost.MilliCPU(a), roost.MilliCPU(b), roost.Bytes(a)
		row.Job.Request.Memory, row.UserCPU = roost.Bytes(b), b
		var out bytes.Buffer
		o := SWFOptions{Computer: name, Queues: []string{name}, Window: accounting.TimeRange{From: 1}}
		n, err := WriteSWF(&out, accountingtest.Rows([]*accounting.AttemptRecord{row}), o)
		if err != nil || n != 1 || strings.Contains(out.String(), "secret") {
			t.Fatalf("%d lines (%v): %q", n, err, out.String())
		}
		log, err := trace.Read(&out)
		if err != nil || len(log.Jobs) != 1 {
			t.Fatal(fmt.Errorf("it is not read: %w", err))
		}
	})
}

// BenchmarkSWF measures lines of attempts. A day of 1e6 should take 20 s at most.
func BenchmarkSWF(b *testing.B) {
	attempts := func(yield func(accounting.AttemptRecord, error) bool) {
		for a, err := range accountingtest.Random(1, b.N) {
			if a.Job.Submitted = accountingtest.Begin; !yield(a, err) {
				return
			}
		}
	}
	b.ReportAllocs()
	if _, err := WriteSWF(io.Discard, attempts, swfOptions); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
