package daemon

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestHeapIdle checks that memory is returned when the daemon is idle and holds much
// unused memory.
func TestHeapIdle(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		name      string
		live      uint64
		held      uint64
		allocated uint64
		want      bool
	}{
		{"little of it", 10 * mb, 17 * mb, 0, false},
		{"after a burst", 10 * mb, 60 * mb, 1 * mb, true},
		{"in a burst", 10 * mb, 60 * mb, 5 * mb, false},
		{"in proportion", 400 * mb, 590 * mb, 0, false},
		{"out of proportion", 400 * mb, 610 * mb, 0, true},
	} {
		then, now := heapStats{allocated: 100 * mb},
			heapStats{liveBytes: c.live, fromSystem: c.held, allocated: 100*mb + c.allocated}
		if got := now.idle(then); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name             string
		burst, sinceTick uint64
		want             bool
	}{
		{"nothing since", 0, 0, false},
		{"after a burst", 200 * mb, 1 * mb, true},
		{"in a burst", 200 * mb, 5 * mb, false},
		{"after a small burst", 50 * mb, 1 * mb, false},
	} {
		trimmed := heapStats{allocated: 100 * mb}
		then := heapStats{allocated: trimmed.allocated + c.burst}
		now := heapStats{liveBytes: 60 * mb, fromSystem: 80 * mb, allocated: then.allocated + c.sinceTick}
		if got := now.isOutdated(then, trimmed); got != c.want {
			t.Errorf("live bytes %s are outdated: %v, want %v", c.name, got, c.want)
		}
	}
	for live, want := range map[uint64]int{0: 200, 32 * mb: 200, 48 * mb: 133, 64 * mb: 100, 4 << 30: 100} {
		if got := daemonGrowth.percentFor(live); got != want {
			t.Errorf("%d bytes live: %d per cent, want %d", live, got, want)
		}
	}
	for live, want := range map[uint64]int{256 * mb: 400, 512 * mb: 200, 4 << 30: 100} {
		if got := relaxedGrowth.percentFor(live); got != want {
			t.Errorf("%d bytes live in haste: %d per cent, want %d", live, got, want)
		}
	}
}

// TestHeapStats checks that the statistics are the runtime's. A heap must no longer be
// idle when its memory was returned.
func TestHeapStats(t *testing.T) {
	var before, with, after heapStats
	before.readStats()
	garbage := make([]byte, 64<<20)
	runtime.GC()
	with.readStats()
	if with.liveBytes < before.liveBytes+63<<20 || with.fromSystem < 64<<20 ||
		with.allocated < before.allocated+64<<20 {
		t.Errorf("%+v, and with 64 MiB more %+v", before, with)
	}
	runtime.KeepAlive(garbage)
	garbage = nil
	runtime.GC()
	with.readStats()
	if !with.idle(with) {
		t.Fatalf("%+v is in proportion", with)
	}
	debug.FreeOSMemory()
	if after.readStats(); after.idle(after) || after.fromSystem > with.fromSystem-60<<20 {
		t.Errorf("%+v, and after it was given back %+v", with, after)
	}
}
