package daemon

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// growth is how much a heap may grow before it is collected, in per cent of what lives in it: time is dearer than memory, as long as there is little of it.
type growth struct {
	percent int    // of a small heap
	small   uint64 // bytes that live in it
}

// largePercent is how much a large heap may grow.
const largePercent = 100

var (
	ofDaemons = growth{200, 32 << 20}
	ofHaste   = growth{400, 256 << 20}
)

// of is how much it may be where so much lives.
func (g growth) of(live uint64) int {
	return int(min(max(g.small*uint64(g.percent)/max(live, 1), largePercent), uint64(g.percent)))
}

// When a daemon gives memory back that it does not need.
const (
	lookAfter = 2 * time.Second
	quiet     = 4 << 20 // bytes that it may allocate between two looks and yet have nothing to do
	spare     = 8 << 20 // bytes that it may keep, and half of what lives
)

// heap is what the runtime says of a process's memory, in bytes.
type heap struct {
	live      uint64 // at the last collection
	held      uint64 // of the system, for the heap
	allocated uint64 // since the start
}

func (h *heap) read() {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	h.live, h.allocated = s[0].Value.Uint64(), s[1].Value.Uint64()
	h.held = s[2].Value.Uint64() + s[3].Value.Uint64() + s[4].Value.Uint64()
}

// idle reports whether little has happened since then, and much more is held than lives.
func (h *heap) idle(then heap) bool {
	return h.allocated-then.allocated < quiet && h.excess() > max(spare, h.live/2)
}

// excess is what is held beyond what lives.
func (h *heap) excess() uint64 { return h.held - min(h.live, h.held) }

// GiveBack keeps a daemon's memory in proportion until the context ends. The Go runtime lets a heap that has been large shrink over many minutes; a daemon that
// has taken in ten thousand jobs gives back within seconds what only taking them in has needed.
func GiveBack(ctx context.Context) {
	var then heap
	then.read()
	left := uint64(0)
	ofDaemons.keep(ctx, func(now heap) {
		if now.idle(then) && now.excess() > left+spare/2 { // what cannot be given back is not asked for again
			debug.FreeOSMemory()
			now.read()
			left = now.excess()
		}
		then = now
	})
}

// Haste has a process that computes for somebody who waits take more memory, so that it spends less time on collecting it, until the context ends.
func Haste(ctx context.Context) { ofHaste.keep(ctx, func(heap) {}) }

// keep lets the heap grow so much until the context ends, and hands over each time how it stands.
func (g growth) keep(ctx context.Context, look func(now heap)) {
	percent := g.percent
	debug.SetGCPercent(percent)
	go func() {
		tick := time.NewTicker(lookAfter)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var now heap
			now.read()
			if p := g.of(now.live); p != percent {
				percent = p
				debug.SetGCPercent(p)
			}
			look(now)
		}
	}()
}
