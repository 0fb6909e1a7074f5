package claim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/startd/slot"
)

func TestGenerationsRise(t *testing.T) {
	dir := t.TempDir()
	var last slot.ClaimID
	for i := range 5 {
		switch i {
		case 2:
			os.Remove(filepath.Join(dir, "generation"))
		case 3:
			os.WriteFile(filepath.Join(dir, "generation"), []byte("junk"), 0o600)
		}
		first, err := NextGeneration(dir, []slot.ClaimID{last})
		if err != nil || first <= last {
			t.Fatalf("start %d: got %d after %d (%v)", i, first, last, err)
		}
		last = first + 100
	}
}

// TestAttemptRecord: a shorter record takes the place of a longer one.
func TestAttemptRecord(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "attempt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, want := range []attemptRecord{
		{Job: 1, Attempt: 1, Outputs: []string{"a long name of a file", "another"},
			Before: map[string]fileAge{"x": {1, 2}}},
		{Job: 2, Attempt: 3, Stdout: "out"},
	} {
		if err := writeAttempt(f, &want); err != nil {
			t.Fatal(err)
		}
		got, err := readAttempt(dir)
		if err != nil || got.Job != want.Job || got.Stdout != want.Stdout || len(got.Outputs) != len(want.Outputs) ||
			len(got.Before) != len(want.Before) {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
	}
}
