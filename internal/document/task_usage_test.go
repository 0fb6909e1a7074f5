package document

import (
	"math"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

const windowBegin = 1_800_000_000_000 // unix milliseconds; a multiple of five minutes

// TestTaskUsageOf: windows of the schedd and of the accounts are one list without
// repetitions. Those of a job are added up.
func TestTaskUsageOf(t *testing.T) {
	row := &scheddapi.JobStatus{State: "running", Attempt: 2, Windows: []*scheddapi.UsageWindow{
		{Begin: windowBegin + 300_000, Wall: 300_000, Cpu: 150_000, Memory: 7},
		{Begin: windowBegin + 610_000, Wall: 100_000, Cpu: 100_000, CpuMax: 1100}}}
	stored := []query.WindowLine{{Begin: windowBegin, Attempt: 1, CPUMean: 250},
		{Begin: windowBegin + 300_000, Attempt: 1, CPUMean: 125},
		{Begin: windowBegin + 300_000, Attempt: 2, CPUMean: 501},
		{Begin: windowBegin + 600_000, Attempt: 2, CPUMean: 1}}
	u := TaskUsageOf(row, stored)
	var cpus []float64
	for _, w := range u.Windows {
		cpus = append(cpus, w.CPUs)
	}
	if len(cpus) != 4 || cpus[0] != 0.25 || cpus[1]+cpus[2] != 0.625 || cpus[3] != 1 || u.Windows[3].CPUsMax != 1.1 {
		t.Errorf("of a task: got %v", u.Windows)
	}
	row.State = ""
	for i := range stored {
		stored[i].Attempt = 0
	}
	u = TaskUsageOf(row, []query.WindowLine{{Begin: windowBegin, CPUMean: 250}, {Begin: windowBegin + 300_000,
		CPUMean: 1500, Memory: 5}})
	if len(u.Windows) != 3 || u.Windows[1].CPUs != 2 || u.Windows[1].Memory != 12 || u.Windows[2].CPUs != 1./3 {
		t.Errorf("of a job: got %+v", u.Windows)
	}
}

// TestFold: any number of windows becomes a bounded one, and keeps means and highest
// values.
func TestFold(t *testing.T) {
	for _, n := range []int{1, 240, 241, 1000, 8640} {
		u := TaskUsage{Window: 300}
		for i := range n {
			u.Windows = append(u.Windows, UsageWindow{CPUs: 2, Memory: int64(i), Read: 1,
				at: windowBegin + accounting.Millis(i)*accounting.UsageWindow})
		}
		u.Fold(240)
		read := int64(0)
		for i, w := range u.Windows {
			if read += w.Read; math.Abs(w.CPUs-2) > 1e-9 || i > 0 &&
				w.at-u.Windows[i-1].at < accounting.Millis(u.Window)*1000/2 {
				t.Errorf("%d windows: %d is %+v", n, i, w)
			}
		}
		if k := len(u.Windows); k > 240 || read != int64(n) || u.Windows[k-1].Memory != int64(n-1) {
			t.Errorf("of %d windows: %d of %d s, %d bytes read", n, k, u.Window, read)
		}
	}
}
