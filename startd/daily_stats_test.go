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
	var first dailyStats
	first.load(dir, noon)
	first.addCPUTime(noon, 2.5)
	first.addInterruption(noon)
	first.addInterruption(noon.Add(time.Second))
	first.addFreezeTime(noon, 40*time.Millisecond)
	first.addFreezeTime(noon, 30*time.Millisecond)
	want := dayStats{Day: "2026-11-22", Given: 2.5, Stopped: 2, Worst: 40 * time.Millisecond,
		Recent: [recentFreezes]freezeRecord{{noon.UnixNano(), 40 * time.Millisecond, 2}}}
	if got := first.currentStats(noon); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	var second dailyStats
	second.load(dir, noon.Add(time.Hour))
	second.addInterruption(noon.Add(time.Hour))
	want.Stopped = 3
	if got := second.currentStats(noon.Add(time.Hour)); got != want {
		t.Errorf("the next startd has %+v, want %+v", got, want)
	}
	second.addFreezeTime(noon.Add(2*time.Hour), 20*time.Millisecond)
	want.Recent = [recentFreezes]freezeRecord{{noon.Add(2 * time.Hour).UnixNano(), 20 * time.Millisecond, 1},
		want.Recent[0]}
	if got := second.currentStats(noon.Add(2 * time.Hour)); got != want {
		t.Errorf("after a freeze: %+v, want %+v", got, want)
	}
	second.addCPUTime(noon.Add(11*time.Hour), 1)
	second.addCPUTime(noon.Add(12*time.Hour), 3)
	if got, want := second.currentStats(noon.Add(12*time.Hour)), (dayStats{Day: "2026-11-23", Given: 3}); got != want {
		t.Errorf("after midnight: %+v, want %+v", got, want)
	}
	for _, text := range []string{"", "{", `{"Day":"2026-11-23","Given":-1}`, `{"Day":"2026-11-21","Given":1}`} {
		if err := os.WriteFile(filepath.Join(dir, "today"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var third dailyStats
		third.load(dir, noon.Add(12*time.Hour))
		if got, want := third.currentStats(noon.Add(12*time.Hour)), (dayStats{Day: "2026-11-23"}); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
