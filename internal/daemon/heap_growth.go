package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapGrowth is how much a heap may grow before a garbage collection, in percent of its
// live bytes. Small heaps may grow more, because time is more expensive than a little
// memory.
type heapGrowth struct {
	percent int    // growth of a small heap, in percent
	small   uint64 // live bytes of a small heap
}

// largeHeapPercent is how much a large heap may grow, in percent.
const largeHeapPercent = 100

var (
	daemonGrowth  = heapGrowth{200, 32 << 20}
	relaxedGrowth = heapGrowth{400, 256 << 20}
)

// percentFor returns how much a heap with live bytes may grow, in percent.
func (g heapGrowth) percentFor(live uint64) int {
	return int(min(max(g.small*uint64(g.percent)/max(live, 1), largeHeapPercent), uint64(g.percent)))
}

// When a daemon returns unused memory to the system.
const (
	checkInterval  = 2 * time.Second
	idleAllocation = 4 << 20 // a daemon that allocates fewer bytes between two checks is idle
	quietChecks    = 4       // checks in a row without allocations after which a trim is repeated
	spareBytes     = 8 << 20 // bytes that a daemon may hold unused, beside half of its live bytes
)

// heapStats is the runtime's memory statistics of a process, in bytes.
type heapStats struct {
	liveBytes  uint64 // at the last collection
	fromSystem uint64 // of the heap, obtained from the system
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

// idle reports whether little was allocated since then, and much more memory is held than
// live.
func (h *heapStats) idle(then heapStats) bool {
	return h.allocated-then.allocated < idleAllocation && h.excessBytes() > max(spareBytes, h.liveBytes/2)
}

// isOutdated reports whether the live bytes of an idle daemon may be those of a burst. It
// is so when more was allocated since the last trim: the last collection may have found
// in use what nobody uses any more.
func (h *heapStats) isOutdated(then, trimmed heapStats) bool {
	return h.allocated-then.allocated < idleAllocation &&
		h.allocated-trimmed.allocated > max(2*spareBytes, h.liveBytes)
}

// excessBytes returns the held bytes that are not live.
func (h *heapStats) excessBytes() uint64 { return h.fromSystem - min(h.liveBytes, h.fromSystem) }

// TrimHeap holds a daemon's memory in proportion to its live bytes until ctx ends. The Go
// runtime shrinks a heap that has been large over many minutes. With TrimHeap a daemon
// that has accepted ten thousand jobs returns the memory for that within seconds.
func TrimHeap(ctx context.Context) {
	var then, trimmed heapStats
	then.readStats()
	left, quiet, again := uint64(0), 0, false
	daemonGrowth.applyUntilDone(ctx, func(now heapStats) {
		if quiet++; now.allocated-then.allocated >= idleAllocation {
			quiet = 0
		}
		// memory that could not be returned before is not tried again
		due := now.idle(then) && now.excessBytes() > left+spareBytes/2 || now.isOutdated(then, trimmed)
		if due || again && quiet >= quietChecks {
			live := now.liveBytes
			debug.FreeOSMemory()
			now.readStats()
			// what a burst has left to be written to disk is in use for a while after it
			again = due || now.liveBytes+spareBytes/2 < live
			left, trimmed, quiet = now.excessBytes(), now, 0
		}
		then = now
	})
}

// RelaxGC lets a process use more memory and spend less time on garbage collection, until
// ctx ends. It is for computations for which a user waits.
func RelaxGC(ctx context.Context) { relaxedGrowth.applyUntilDone(ctx, func(heapStats) {}) }

// applyUntilDone applies the growth until ctx ends, and calls look periodically with the
// present statistics.
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
