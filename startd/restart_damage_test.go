package startd

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/startd/cpuspeed"
	"github.com/roost-batch/roost/startd/slot"
)

// TestDamage damages the small files of a startd. Their readers must get what was
// written, or an error, which is logged and makes the figure begin anew.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &reliabilityTracker{path: filepath.Join(dir, "reliability"), boot: "boot",
		history: checkpoint.FailureHistory{}.After(90*time.Hour, 3)}
	if err := r.saveState(false); err != nil {
		t.Fatal(err)
	}
	var day dailyStats
	if err := day.load(dir, noon); err != nil {
		t.Fatal(err)
	}
	if err := writePortFile(filepath.Join(dir, "ports"), portFile{"boot", []slot.FreedPort{{Number: 80, Job: "7.n1",
		Until: 4711}}}); err != nil {
		t.Fatal(err)
	}
	day.addCPUTime(noon.Add(time.Minute), 4711)
	var speed cpuSpeed
	speed.measured.Store(&cpuspeed.Speed{KFlops: 4711, Mips: 815})
	if err := speed.save(filepath.Join(dir, "cpu_speed"), "boot"); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (any, error){
		"cpu_speed": func() (any, error) {
			var s cpuSpeed
			err := s.load(filepath.Join(dir, "cpu_speed"), "boot")
			return s.measured.Load(), err
		},
		"reliability": func() (any, error) { r, err := openReliability(dir, "boot"); return r.history, err },
		"ports":       func() (any, error) { return readPortFile(filepath.Join(dir, "ports")) },
		"today":       func() (any, error) { var d dailyStats; err := d.load(dir, noon); return d.now, err },
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
}
