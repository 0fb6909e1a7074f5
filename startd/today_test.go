package startd

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestToday holds that the figures of a day outlast a startd, and no day.
func TestToday(t *testing.T) {
	dir, noon := t.TempDir(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local)
	var first today
	first.open(dir, noon)
	first.gave(noon, 2.5)
	first.interrupted(noon)
	first.interrupted(noon.Add(time.Second))
	first.took(noon, 40*time.Millisecond)
	first.took(noon, 30*time.Millisecond)
	want := figures{"2026-11-22", 2.5, 2, 40 * time.Millisecond}
	if got := first.figures(noon); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	var second today
	second.open(dir, noon.Add(time.Hour))
	second.interrupted(noon.Add(time.Hour))
	want.Stopped = 3
	if got := second.figures(noon.Add(time.Hour)); got != want {
		t.Errorf("the next startd has %+v, want %+v", got, want)
	}
	second.gave(noon.Add(11*time.Hour), 1)
	second.gave(noon.Add(12*time.Hour), 3)
	if got, want := second.figures(noon.Add(12*time.Hour)), (figures{Day: "2026-11-23", Given: 3}); got != want {
		t.Errorf("after midnight: %+v, want %+v", got, want)
	}
	for _, text := range []string{"", "{", `{"Day":"2026-11-23","Given":-1}`, `{"Day":"2026-11-21","Given":1}`} {
		if err := os.WriteFile(filepath.Join(dir, "today"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var third today
		third.open(dir, noon.Add(12*time.Hour))
		if got, want := third.figures(noon.Add(12*time.Hour)), (figures{Day: "2026-11-23"}); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
