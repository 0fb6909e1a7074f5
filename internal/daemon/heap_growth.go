package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapGrowth is how much a heap may grow before it is collected, in per cent of what
// lives in it: time is dearer than memory, as long as there is little of it.
type heapGrowth struct {
	percent int    // of a small heap
	small   uint64 // bytes that live in it
}

// largeHeapPercent is how much a large heap may grow.
const largeHeapPercent = 100

var (
	daemonGrowth  = heapGrowth{200, 32 << 20}
	relaxedGrowth = heapGrowth{400, 256 << 20}
)

// percentFor is how much it may be where so much lives.
func (g heapGrowth) percentFor(live uint64) int {
	return int(min(max(g.small*uint64(g.percent)/max(live, 1), largeHeapPercent), uint64(g.percent)))
}

// When a daemon gives memory back that it does not need.
const (
	checkInterval  = 2 * time.Second
	idleAllocation = 4 << 20 // bytes that it may allocate between two looks and yet have nothing to do
	spareBytes     = 8 << 20 // bytes that it may keep, and half of what lives
)

// heapStats is what the runtime says of a process's memory, in bytes.
type heapStats struct {
	liveBytes  uint64 // at the last collection
	fromSystem uint64 // of the system, for the heap
	allocated  uint64 // since the start
}

func (h *heapStats) readStats() {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	h.liveBytes, h.allocated = s[0].Value.Uint64(), s[1].Value.Uint64()
	h.fromSystem = s[2].Value.Uint64() + s[3].Value.Uint64() + s[4].Value.Uint64()
}

// idle reports whether little has happened since then, and much more is held than lives.
func (h *heapStats) idle(then heapStats) bool {
	return h.allocated-then.allocated < idleAllocation && h.excessBytes() > max(spareBytes, h.liveBytes/2)
}

// excessBytes is what is held beyond what lives.
func (h *heapStats) excessBytes() uint64 { return h.fromSystem - min(h.liveBytes, h.fromSystem) }

// TrimHeap keeps a daemon's memory in proportion until the context ends. The Go runtime
// lets a heap that has been large shrink over many minutes; a daemon that has taken in
// ten thousand jobs gives back within seconds what only taking them in has needed.
func TrimHeap(ctx context.Context) {
	var then heapStats
	then.readStats()
	left := uint64(0)
	daemonGrowth.applyUntilDone(ctx, func(now heapStats) {
		if now.idle(then) && now.excessBytes() > left+spareBytes/2 { // what cannot be given back is not asked for again
			debug.FreeOSMemory()
			now.readStats()
			left = now.excessBytes()
		}
		then = now
	})
}

// RelaxGC has a process that computes for somebody who waits take more memory, so that it
// spends less time on collecting it, until the context ends.
func RelaxGC(ctx context.Context) { relaxedGrowth.applyUntilDone(ctx, func(heapStats) {}) }

// applyUntilDone lets the heap grow so much until the context ends, and hands over each
// time how it stands.
func (g heapGrowth) applyUntilDone(ctx context.Context, look func(now heapStats)) {
	percent := g.percent
	debug.SetGCPercent(percent)
	go func() {
		tick := time.NewTicker(checkInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var now heapStats
			now.readStats()
			if p := g.percentFor(now.liveBytes); p != percent {
				percent = p
				debug.SetGCPercent(p)
			}
			look(now)
		}
	}()
}
