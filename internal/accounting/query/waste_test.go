package query

import (
	"encoding/json"
	"iter"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// endedAttempts is a reader of attempts alone.
type endedAttempts struct {
	accounting.Reader
	all []accounting.AttemptRecord
}

func (r endedAttempts) Attempts(accounting.Selection) iter.Seq2[accounting.AttemptRecord, error] {
	return func(yield func(accounting.AttemptRecord, error) bool) {
		for _, a := range r.all {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// TestWaste: attempts of one user and name are one line. A suspended attempt wastes no
// cores, and the peak of one that failed says nothing.
func TestWaste(t *testing.T) {
	attempt := func(name string, cores roost.MilliCPU, used, suspended int64, peak roost.Bytes,
		code int32) accounting.AttemptRecord {
		return accounting.AttemptRecord{Job: &accounting.JobEntry{Owner: "ann", Name: name},
			AttemptEntry: accounting.AttemptEntry{Held: roost.Resources{CPU: cores, Memory: roost.GiB}, Wall: 3_600_000,
				UserCPU: used, Suspended: suspended, Peak: roost.Resources{Memory: peak}, ExitCode: code,
				Cause: accounting.EndedExit}}
	}
	r := endedAttempts{all: []accounting.AttemptRecord{attempt("fit", 1000, 3_600_000, 0, roost.MiB, 0),
		attempt("plot", 4000, 3_600_000, 1_800_000, 100*roost.MiB, 0), attempt("plot", 2000, 0, 0, 900*roost.MiB, 1)}}
	var got []WasteLine
	q := Query{Report: Waste}
	if err := q.Answer(r, nil, &Now{}, func(text []byte) error {
		var l WasteLine
		err := json.Unmarshal(text, &l)
		got = append(got, l)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []WasteLine{
		{Owner: "ann", Name: "plot", Attempts: 2, HeldCPU: 14_400_000, UsedCPU: 3_600_000, Idle: 10_800_000,
			HeldMem: 2 * 1024 * 3600, PeakMem: 1000 * 3600, Memory: int64(roost.GiB), Peak: int64(100 * roost.MiB),
			Succeeded: 1},
		{Owner: "ann", Name: "fit", Attempts: 1, HeldCPU: 3_600_000, UsedCPU: 3_600_000, HeldMem: 1024 * 3600,
			PeakMem: 3600, Memory: int64(roost.GiB), Peak: int64(roost.MiB), Succeeded: 1},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
