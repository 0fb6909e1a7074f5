package startd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/filesum"
)

// today is what the machine has given since midnight, and what that has cost its owner. It lies on the disk, so that a startd that is started anew counts
// on; what a crash of the machine takes is not missed.
type today struct {
	path string // empty: it is kept in memory alone

	mu   sync.Mutex
	now  figures
	kept time.Time // when it was written last
}

// figures are those of one day.
type figures struct {
	Day     string        // as in 2026-11-22, by the machine's clock and time zone
	Given   float64       // core seconds that tasks had
	Stopped uint32        // how often a task was stopped for the owner
	Worst   time.Duration // the longest that it took until all stood still
}

// keepFigures is how often what was given is written down: more often than that nobody reads it.
const keepFigures = 10 * time.Second

// open reads what an earlier start has written. A file that says nothing of today, or makes no sense, is begun anew.
func (t *today) open(dir string, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.path = filepath.Join(dir, "today")
	var f figures
	text, err := os.ReadFile(t.path)
	if err == nil {
		text, err = filesum.Check(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil && f.Day == now.Format(time.DateOnly) && f.Given >= 0 && f.Worst >= 0 {
		t.now = f
	}
	return damaged(t.path, err)
}

// gave counts processor time that tasks had, in core seconds.
func (t *today) gave(now time.Time, seconds float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(now)
	if seconds <= 0 {
		return
	}
	t.now.Given += seconds
	if now.Sub(t.kept) >= keepFigures {
		t.keep(now)
	}
}

// interrupted counts a task that was stopped for the owner.
func (t *today) interrupted(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(now)
	t.now.Stopped++
	t.keep(now)
}

// took notes how long it was until all tasks stood still.
func (t *today) took(now time.Time, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(now)
	if d > t.now.Worst {
		t.now.Worst = d
		t.keep(now)
	}
}

func (t *today) figures(now time.Time) figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(now)
	return t.now
}

// begin counts anew from midnight.
func (t *today) begin(now time.Time) {
	if day := now.Format(time.DateOnly); day != t.now.Day {
		t.now = figures{Day: day}
	}
}

// keep writes the figures down, without waiting for the disk. If that fails the next startd begins the day anew, and nothing else is the worse for it.
func (t *today) keep(now time.Time) {
	if t.path == "" {
		return
	}
	t.kept = now
	text, err := json.Marshal(t.now)
	if err == nil {
		err = os.WriteFile(t.path+".new", filesum.Append(text), 0o600)
	}
	if err == nil {
		os.Rename(t.path+".new", t.path)
	}
}
