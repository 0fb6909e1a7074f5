package claim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/startd/slot"
)

// TestDamage damages the small files of a claim. Their readers must get what was written,
// or an error, which is logged and ends the claim. No claim id is given again.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	claim := File{ID: 4<<generationBits | 7, Schedd: "s1", Owner: "ada", UID: 1000, Lease: time.Minute,
		BootID: "boot", Cookie: "cookie", Cores: []int{1, 2}}
	if err := writeClaimFile(dir, claim); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "attempt"))
	if err != nil {
		t.Fatal(err)
	}
	attempt := attemptRecord{Job: 12, Index: 3, Attempt: 2, Name: "sim", Notice: time.Second, Scratch: "/tmp/x",
		Outputs: []string{"a", "b"}}
	longer := attempt
	longer.Name = "a name that is longer, of which something is left"
	for _, r := range []attemptRecord{longer, attempt} {
		if err := writeAttempt(f, &r); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	for range 12 {
		if _, err := NextGeneration(dir, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range map[string]func() (any, error){
		"claim": func() (any, error) { return readClaimFile(dir) },
		// of no task
		"attempt": func() (any, error) { r, err := readAttempt(dir); r.Summed = false; return r, err },
	} {
		t.Run(name, func(t *testing.T) {
			want, err := read()
			if text, _ := json.Marshal(want); err != nil || len(text) < 10 {
				t.Fatalf("got %s, %v", text, err)
			}
			refused := 0
			damage.ForEach(t, filepath.Join(dir, name), 100, func(what string) {
				got, err := read()
				if err != nil {
					refused++
				} else if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: got %+v, without a word", what, got)
				}
			})
			if refused == 0 {
				t.Error("no damage was noticed")
			}
		})
	}
	t.Run("generation", func(t *testing.T) {
		damage.ForEach(t, filepath.Join(dir, "generation"), 100, func(what string) {
			if id, err := NextGeneration(dir, nil); err != nil || id <= slot.ClaimID(13<<generationBits) {
				t.Fatalf("%s: claims begin at %x: %v", what, uint64(id), err)
			}
		})
	})
}
