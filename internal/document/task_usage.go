package document

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// TaskUsage is what a task used over time, or all tasks of a job together.
type TaskUsage struct {
	Version int           `json:"v"`
	ID      string        `json:"id"`
	State   string        `json:"state"`
	Request Resources     `json:"request"`         // of one task
	Hints   []string      `json:"hints,omitempty"` // what to request next time, as roost show says it
	Window  int64         `json:"window_seconds"`
	Windows []UsageWindow `json:"windows"`           // oldest first
	Missing string        `json:"missing,omitempty"` // why what has ended is not in windows
}

// UsageWindow is what was used within one window. Of a job the highest values are sums
// over the tasks, which may not have been at their highest at the same time.
type UsageWindow struct {
	Begin     string  `json:"begin"`
	Attempt   uint32  `json:"attempt,omitempty"` // of a task
	CPUs      float64 `json:"cpus"`              // kept busy on average
	CPUsMax   float64 `json:"cpus_max"`
	Memory    int64   `json:"memory_bytes"` // highest
	Cache     int64   `json:"cache_bytes"`  // highest
	GPUs      float64 `json:"gpus"`         // kept busy on average
	GPUMemory int64   `json:"gpu_memory_bytes"`
	Read      int64   `json:"read_bytes"`
	Written   int64   `json:"written_bytes"`

	at accounting.Millis
}

// Time returns the begin of the window.
func (w *UsageWindow) Time() time.Time { return w.at.Time() }

// TaskUsageOf returns the document of a row with its windows, and of those of the
// accounts. What both have is in it once.
func TaskUsageOf(s *scheddapi.JobStatus, stored []query.WindowLine) TaskUsage {
	u := TaskUsage{Version: Version, ID: s.GetId(), State: StateOf(s), Request: ResourcesOf(s.GetRequest()),
		Window: accounting.UsageWindow / 1000, Windows: []UsageWindow{}}
	isTask := s.GetState() != ""
	type place struct {
		slot    accounting.Millis
		attempt uint32
	}
	live := map[place]int{}
	for _, w := range s.GetWindows() {
		at := accounting.Millis(w.GetBegin())
		one := liveWindow(w, isTask)
		if isTask {
			one.Attempt = s.GetAttempt()
		}
		live[place{at - at%accounting.UsageWindow, one.Attempt}] = len(u.Windows)
		u.Windows = append(u.Windows, one)
	}
	for i := range stored {
		w := &stored[i]
		one := storedWindow(w)
		switch n, known := live[place{w.Begin, one.Attempt}]; {
		case known && !isTask:
			u.Windows[n].add(&one)
		case !known:
			u.Windows = append(u.Windows, one)
		}
	}
	slices.SortStableFunc(u.Windows, func(a, b UsageWindow) int { return cmp.Compare(a.at, b.at) })
	return u
}

func liveWindow(w *scheddapi.UsageWindow, isTask bool) UsageWindow {
	wall := w.GetWall()
	if !isTask {
		wall = accounting.UsageWindow // a sum over tasks, of which some ran for a part of it
	}
	return UsageWindow{
		at: accounting.Millis(w.GetBegin()), Begin: Timestamp(w.GetBegin() * 1e6),
		CPUs: float64(w.GetCpu()) / float64(max(wall, 1)), CPUsMax: float64(w.GetCpuMax()) / 1000,
		Memory: w.GetMemory(), Cache: w.GetCache(), GPUs: float64(w.GetGpu()) / 1000, GPUMemory: w.GetGpuMemory(),
		Read: w.GetReadBytes(), Written: w.GetWriteBytes(),
	}
}

func storedWindow(w *query.WindowLine) UsageWindow {
	return UsageWindow{
		at: w.Begin, Begin: Timestamp(int64(w.Begin) * 1e6), Attempt: uint32(w.Attempt),
		CPUs: float64(w.CPUMean) / 1000, CPUsMax: float64(w.CPUMax) / 1000, Memory: w.Memory, Cache: w.Cache,
		GPUs: float64(w.GPUMean) / 1000, GPUMemory: w.GPUMemory, Read: w.Read, Written: w.Written,
	}
}

// add adds what other tasks used at the same time.
func (w *UsageWindow) add(o *UsageWindow) {
	w.CPUs, w.CPUsMax, w.GPUs = w.CPUs+o.CPUs, w.CPUsMax+o.CPUsMax, w.GPUs+o.GPUs
	w.Memory, w.Cache, w.GPUMemory = w.Memory+o.Memory, w.Cache+o.Cache, w.GPUMemory+o.GPUMemory
	w.Read, w.Written = w.Read+o.Read, w.Written+o.Written
}

// Fold joins windows that follow one another until there are at most so many.
func (u *TaskUsage) Fold(most int) {
	if len(u.Windows) <= most || most < 1 {
		return
	}
	for _, n := range []int64{2, 3, 6, 12, 24, 48, 144, 288, 576, 2016, 4032, 8640} {
		if folded := foldWindows(u.Windows, accounting.Millis(n)*accounting.UsageWindow); len(folded) <= most {
			u.Windows, u.Window = folded, n*accounting.UsageWindow/1000
			return
		}
	}
	u.Windows = u.Windows[len(u.Windows)-most:]
}

// foldWindows makes one window of those of an attempt that begin in the same length of
// time.
func foldWindows(windows []UsageWindow, length accounting.Millis) (folded []UsageWindow) {
	for i := 0; i < len(windows); {
		all, n := windows[i], 1.0
		for i++; i < len(windows) && windows[i].at/length == all.at/length && windows[i].Attempt == all.Attempt; i++ {
			w := &windows[i]
			all.CPUs, all.GPUs, n = all.CPUs+w.CPUs, all.GPUs+w.GPUs, n+1
			all.CPUsMax = max(all.CPUsMax, w.CPUsMax)
			all.Memory, all.Cache, all.GPUMemory = max(all.Memory, w.Memory), max(all.Cache, w.Cache),
				max(all.GPUMemory, w.GPUMemory)
			all.Read, all.Written = all.Read+w.Read, all.Written+w.Written
		}
		all.CPUs, all.GPUs = all.CPUs/n, all.GPUs/n
		folded = append(folded, all)
	}
	return folded
}
