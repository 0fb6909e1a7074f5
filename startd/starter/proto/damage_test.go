package proto

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
)

// TestDamage damages a starter's journal in many ways. The records before the damage must
// count, and no state may result that never was.
func TestDamage(t *testing.T) {
	a, b := TaskAttempt{1, 2, 3}, TaskAttempt{1, 2, 4}
	var journal []byte
	were := []StarterState{{}}
	for _, m := range []StarterMessage{
		{Type: TypeStarted, Attempt: a}, {Type: TypeStarted, Attempt: a, State: StarterState{PID: 9, Since: 8}},
		{Type: TypeExited, Attempt: a, State: StarterState{Exit: TaskExit{Code: 4}}},
		{Type: TypeDiscarded, Attempt: a}, {Type: TypeStarted, Attempt: b, State: StarterState{PID: 7}},
		{Type: TypeExited, Attempt: b, State: StarterState{Exit: TaskExit{Code: 1}}},
	} {
		journal = AppendRecord(journal, &m)
		were = append(were, Replay(journal))
	}
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, journal, 0o600); err != nil {
		t.Fatal(err)
	}
	noticed := 0
	damage.ForEach(t, path, 300, func(what string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := Replay(text)
		if !slices.Contains(were, got) {
			t.Fatalf("%s: got %+v, which was never so", what, got)
		}
		if got != were[len(were)-1] {
			noticed++
		}
	})
	if noticed == 0 {
		t.Error("no damage was noticed")
	}
}
