package usagewindow

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/wire"
)

// The bounds of the memory: windows of one attempt, which are a day, and of all. When all
// are used, an attempt loses its oldest for a new one, but not those of the hour that is
// still to be packed.
const (
	maxAttempt  = 288
	maxTotal    = 200_000
	maxUnpacked = 24 // of an attempt, that are not packed: shorter ones than usual
)

// Attempt names an attempt of a task of one schedd.
type Attempt struct {
	Job     uint64
	Index   int // of the task, from 0
	Attempt roost.AttemptNumber
}

// Log is the windows of all attempts that run. One goroutine owns it.
type Log struct {
	jobs  map[uint64]map[int]*series
	total int
	pack  func(Attempt, *accounting.UsageHour)
}

// series is the windows of one attempt, in the order of their begin.
type series struct {
	attempt  roost.AttemptNumber
	windows  []window
	unpacked int // index of the first window that is not packed
}

// NewLog returns an empty log. pack gets each hour of an attempt that is complete, and
// fills in its key.
func NewLog(pack func(Attempt, *accounting.UsageHour)) *Log {
	return &Log{jobs: make(map[uint64]map[int]*series), pack: pack}
}

// Add takes in what a node says of an attempt that runs there. What is not later than
// what is there was said before.
func (l *Log) Add(a Attempt, windows []*wire.UsageWindow, now time.Time) {
	if len(windows) == 0 {
		return
	}
	s := l.jobs[a.Job][a.Index]
	if s != nil && s.attempt != a.Attempt {
		l.Remove(a.Job, a.Index)
		s = nil
	}
	for _, m := range windows[max(len(windows)-maxAttempt, 0):] {
		w, ok := parse(m, now)
		if !ok || s != nil && w.begin <= s.windows[len(s.windows)-1].begin {
			continue
		}
		if s == nil {
			s = &series{attempt: a.Attempt}
			if l.jobs[a.Job] == nil {
				l.jobs[a.Job] = make(map[int]*series)
			}
			l.jobs[a.Job][a.Index] = s
		}
		if n := len(s.windows); n > s.unpacked && s.windows[n-1].begin.Hour() != w.begin.Hour() {
			l.packHour(a, s)
		}
		s.windows = append(s.windows, w)
		l.total++
		l.trim(s)
	}
}

// trim drops the oldest windows of an attempt that has too many.
func (l *Log) trim(s *series) {
	if n := len(s.windows); n-s.unpacked > maxUnpacked { // they are short: two become one
		last, before := &s.windows[n-1], &s.windows[n-2]
		if before.slot() == last.slot() {
			before.join(last)
			before.begin = last.begin // a window that is sent again is known by it
			s.windows = s.windows[:n-1]
			l.total--
		}
	}
	if len(s.windows) > maxAttempt || l.total > maxTotal && s.unpacked > 0 {
		s.windows = slices.Delete(s.windows, 0, 1)
		s.unpacked = max(s.unpacked-1, 0)
		l.total--
	}
}

// packHour packs what is not packed yet. All of it lies in one hour.
func (l *Log) packHour(a Attempt, s *series) {
	if s.unpacked == len(s.windows) {
		return
	}
	hour := accounting.UsageHour{Hour: s.windows[s.unpacked].begin.Hour()}
	var slots [len(hour.Windows)]window
	for _, w := range s.windows[s.unpacked:] {
		slots[(w.begin-hour.Hour)/accounting.UsageWindow].join(&w)
	}
	for i := range slots {
		if slots[i].wall > 0 {
			hour.Windows[i] = slots[i].sample()
		}
	}
	s.unpacked = len(s.windows)
	l.pack(a, &hour)
}

// Remove packs and forgets the windows of a task's attempt, which has ended.
func (l *Log) Remove(job uint64, index int) {
	s := l.jobs[job][index]
	if s == nil {
		return
	}
	l.packHour(Attempt{job, index, s.attempt}, s)
	l.total -= len(s.windows)
	if delete(l.jobs[job], index); len(l.jobs[job]) == 0 {
		delete(l.jobs, job)
	}
}

// Windows returns the windows of the tasks with from <= index < to. Those of several
// tasks are added up.
func (l *Log) Windows(job uint64, from, to int) []*wire.UsageWindow {
	tasks := l.jobs[job]
	if to-from == 1 {
		return messages(tasks[from])
	}
	var only *series
	found := 0
	sums := map[accounting.Millis]*window{}
	for index, s := range tasks {
		if index < from || index >= to {
			continue
		}
		only, found = s, found+1
		s.addTo(sums)
	}
	if found <= 1 {
		return messages(only)
	}
	all := &series{}
	byBegin := func(a, b *window) int { return cmp.Compare(a.begin, b.begin) }
	for _, w := range slices.SortedFunc(maps.Values(sums), byBegin) {
		all.windows = append(all.windows, *w)
	}
	return messages(all)
}

// addTo adds the windows of a task to the sums of a job, by five minutes.
func (s *series) addTo(sums map[accounting.Millis]*window) {
	for i := 0; i < len(s.windows); {
		at := s.windows[i].slot()
		one := s.windows[i]
		for i++; i < len(s.windows) && s.windows[i].slot() == at; i++ {
			one.join(&s.windows[i])
		}
		if sums[at] == nil {
			sums[at] = &window{begin: at}
		}
		sums[at].add(&one)
	}
}

func messages(s *series) (list []*wire.UsageWindow) {
	if s == nil {
		return nil
	}
	for i := range s.windows {
		list = append(list, s.windows[i].message())
	}
	return list
}
