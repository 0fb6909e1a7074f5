package usagewindow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/wire"
)

var begin = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// at is a window that begins so many minutes after begin.
func at(minutes int, cpu int64) *wire.UsageWindow {
	return &wire.UsageWindow{Begin: begin.Add(time.Duration(minutes) * time.Minute).UnixMilli(), Wall: 300_000,
		Cpu: cpu, CpuMax: uint32(cpu / 100), Memory: cpu * 10, Gpu: 500, ReadBytes: 7}
}

// packed collects the hours that a log packs.
type packed []accounting.UsageHour

func (p *packed) add(a Attempt, u *accounting.UsageHour) {
	u.Seq, u.Index, u.Attempt = a.Job, a.Index, a.Attempt
	*p = append(*p, *u)
}

// TestHoursArePacked: an hour is packed when the next one begins, and the rest when the
// attempt ends. What is sent again changes nothing.
func TestHoursArePacked(t *testing.T) {
	var got packed
	l, a := NewLog(got.add), Attempt{Job: 3, Index: 2, Attempt: 1}
	var all []*wire.UsageWindow
	for minutes := 50; minutes < 70; minutes += 5 {
		all = append(all, at(minutes, 150_000))
		l.Add(a, all, begin.Add(time.Hour)) // with all before it
	}
	if len(got) != 1 || got[0].Hour.Time() != begin || got[0].Seq != 3 || got[0].Index != 2 || got[0].Attempt != 1 {
		t.Fatalf("after the hour it packs %+v", got)
	}
	want := accounting.UsageSample{CPUMean: 500, CPUMax: 1500, MemoryMax: 1_500_000, GPUMean: 500, Read: 7}
	if got[0].Windows[10] != want || got[0].Windows[11] != want || got[0].Windows[0] != (accounting.UsageSample{}) {
		t.Errorf("got %+v", got[0].Windows)
	}
	if live := l.Windows(3, 2, 3); len(live) != 4 || live[3].GetCpu() != 150_000 {
		t.Errorf("it shows %v", live)
	}
	l.Remove(3, 2)
	if len(got) != 2 || got[1].Hour.Time() != begin.Add(time.Hour) || got[1].Windows[1] != want ||
		got[1].Windows[2] != (accounting.UsageSample{}) {
		t.Errorf("at the end it packs %+v", got[1:])
	}
	if l.total != 0 || len(l.jobs) != 0 {
		t.Errorf("%d windows of %d jobs are left", l.total, len(l.jobs))
	}
}

// TestJobsAreSummed: the windows of a job are the sums over its tasks.
func TestJobsAreSummed(t *testing.T) {
	var got packed
	l := NewLog(got.add)
	l.Add(Attempt{1, 0, 1}, []*wire.UsageWindow{at(0, 1000), at(5, 2000)}, begin)
	l.Add(Attempt{1, 4, 1}, []*wire.UsageWindow{at(5, 500), at(7, 100), at(10, 5)}, begin)
	l.Add(Attempt{2, 0, 1}, []*wire.UsageWindow{at(5, 7)}, begin)
	var cpu, wall []int64
	for _, w := range l.Windows(1, 0, math.MaxInt) {
		cpu, wall = append(cpu, w.GetCpu()), append(wall, w.GetWall())
	}
	if !slices.Equal(cpu, []int64{1000, 2600, 5}) || !slices.Equal(wall, []int64{300_000, 900_000, 300_000}) {
		t.Errorf("got %v within %v", cpu, wall)
	}
	// an attempt that another one follows is packed
	if l.Add(Attempt{1, 4, 2}, []*wire.UsageWindow{at(10, 9)}, begin); len(got) != 1 || got[0].Attempt != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestHostileWindows: whatever a node says, memory is bounded. Times and amounts that are
// packed are possible ones.
func TestHostileWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		hours := 0
		l := NewLog(func(_ Attempt, u *accounting.UsageHour) {
			hours++
			for i, w := range u.Windows {
				if w.CPUMean < 0 || w.CPUMean > maxCores*1000 || min(w.MemoryMax, w.Read, w.GPUMax) < 0 {
					t.Fatalf("window %d: %+v", i, w)
				}
			}
		})
		now := begin
		for range 2000 {
			var list []*wire.UsageWindow
			for range random.IntN(40) {
				list = append(list, &wire.UsageWindow{
					Begin: now.UnixMilli() + random.Int64N(1<<random.IntN(40)) - random.Int64N(1<<random.IntN(40)),
					Wall:  hostile(random), Cpu: hostile(random), CpuMax: random.Uint32(), Memory: hostile(random),
					Gpu: random.Uint32(), ReadBytes: hostile(random), WriteBytes: hostile(random)})
			}
			l.Add(Attempt{uint64(random.IntN(3)), random.IntN(3), roost.AttemptNumber(random.IntN(2))}, list, now)
			now = now.Add(time.Duration(random.IntN(60)) * time.Second)
			check(t, l)
		}
		l.Windows(1, 0, 3)
		for job := range uint64(3) {
			for index := range 3 {
				l.Remove(job, index)
			}
		}
		if check(t, l); l.total != 0 || hours == 0 {
			t.Fatalf("%d windows are left; %d hours were packed", l.total, hours)
		}
	}
}

func hostile(r *rand.Rand) int64 {
	switch r.IntN(4) {
	case 0:
		return math.MaxInt64 - r.Int64N(3)
	case 1:
		return -r.Int64()
	}
	return r.Int64N(1 << r.IntN(62))
}

// check holds the invariants of a log.
func check(t *testing.T, l *Log) {
	t.Helper()
	total := 0
	for _, tasks := range l.jobs {
		for _, s := range tasks {
			total += len(s.windows)
			if len(s.windows) == 0 || len(s.windows) > maxAttempt || s.unpacked < 0 || s.unpacked > len(s.windows) {
				t.Fatalf("an attempt has %d windows, %d of them packed", len(s.windows), s.unpacked)
			}
			for i := range s.windows[1:] {
				if s.windows[i].begin >= s.windows[i+1].begin {
					t.Fatalf("windows begin at %v and then %v", s.windows[i].begin, s.windows[i+1].begin)
				}
			}
			for i := s.unpacked; i < len(s.windows); i++ {
				if s.windows[i].begin.Hour() != s.windows[s.unpacked].begin.Hour() {
					t.Fatal("two hours are to be packed")
				}
			}
		}
	}
	if total != l.total {
		t.Fatalf("%d windows are counted as %d", total, l.total)
	}
}
