package startd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/filesum"
)

// dailyStats is what the machine has given since midnight, and what that has cost its
// owner. It lies on the disk, so that a startd that is started anew counts on; what a
// crash of the machine takes is not missed.
type dailyStats struct {
	path string // empty: it is kept in memory alone

	mu        sync.Mutex
	now       dayStats
	lastSaved time.Time // when it was written last
	counted   uint32    // of Stopped: those in a freeze that has come to rest
}

// dayStats are those of one day.
type dayStats struct {
	Day     string        // as in 2026-11-22, by the machine's clock and time zone
	Given   float64       // core seconds that tasks had
	Stopped uint32        // how often a task was stopped for the owner
	Worst   time.Duration // the longest that it took until all stood still
	// the last times that tasks were stopped for the owner, the newest first; zero: there
	// were fewer
	Recent [recentFreezes]freezeRecord
}

// recentFreezes is how many of the last freezes are kept.
const recentFreezes = 8

// freezeRecord is one time that tasks were stopped for the owner.
type freezeRecord struct {
	At    int64         // unix nanoseconds
	Took  time.Duration // until all stood still
	Tasks uint32
}

// statsSaveInterval is how often what was given is written down: more often than that
// nobody reads it.
const statsSaveInterval = 10 * time.Second

// load reads what an earlier start has written. A file that says nothing of today, or
// makes no sense, is begun anew.
func (t *dailyStats) load(dir string, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.path = filepath.Join(dir, "today")
	var f dayStats
	text, err := os.ReadFile(t.path)
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Day == now.Format(time.DateOnly) && f.Given >= 0 && f.Worst >= 0 {
		t.now, t.counted = f, f.Stopped
	}
	return damagedFileError(t.path, err)
}

// addCPUTime counts processor time that tasks had, in core seconds.
func (t *dailyStats) addCPUTime(now time.Time, seconds float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startDay(now)
	if seconds <= 0 {
		return
	}
	t.now.Given += seconds
	if now.Sub(t.lastSaved) >= statsSaveInterval {
		t.save(now)
	}
}

// addInterruption counts a task that was stopped for the owner.
func (t *dailyStats) addInterruption(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startDay(now)
	t.now.Stopped++
	t.save(now)
}

// addFreezeTime notes how long it was until all tasks stood still.
func (t *dailyStats) addFreezeTime(now time.Time, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startDay(now)
	stopped := t.now.Stopped - t.counted
	if stopped > 0 { // none: it is how long it took to see that there was nothing to stop
		t.counted = t.now.Stopped
		copy(t.now.Recent[1:], t.now.Recent[:recentFreezes-1])
		t.now.Recent[0] = freezeRecord{now.UnixNano(), d, stopped}
	}
	if t.now.Worst = max(t.now.Worst, d); stopped > 0 || t.now.Worst == d {
		t.save(now)
	}
}

func (t *dailyStats) currentStats(now time.Time) dayStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startDay(now)
	return t.now
}

// startDay counts anew from midnight.
func (t *dailyStats) startDay(now time.Time) {
	if day := now.Format(time.DateOnly); day != t.now.Day {
		t.now, t.counted = dayStats{Day: day}, 0
	}
}

// save writes the figures down, without waiting for the disk. If that fails the next
// startd begins the day anew, and nothing else is the worse for it.
func (t *dailyStats) save(now time.Time) {
	if t.path == "" {
		return
	}
	t.lastSaved = now
	text, err := json.Marshal(t.now)
	if err == nil {
		err = os.WriteFile(t.path+".new", filesum.AppendChecksum(text), 0o600)
	}
	if err == nil {
		os.Rename(t.path+".new", t.path)
	}
}
