package sendqueue

import (
	"testing"
)

// TestQueueIsBounded checks that a bounded queue accepts a limited number of messages and
// bytes. It accepts a single message of any size. Beyond the limit it reports the
// overflow once, and is empty.
func TestQueueIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		items, bytes int
		sizes        []int
		fits         bool
	}{
		"few": {3, 100, []int{10, 10, 10}, true}, "too many": {3, 100, []int{10, 10, 10, 10, 10}, false},
		"too large": {3, 100, []int{60, 60, 1}, false},
		"one large": {3, 100, []int{1000}, true}, "one after a large one": {3, 100, []int{1000, 1}, false},
	} {
		o, over := New[int](), 0
		o.Limit(c.items, c.bytes, func(size int) int { return size }, func() { over++ })
		for _, size := range c.sizes {
			o.Put(size)
		}
		if n := len(o.Take()); c.fits && (n != len(c.sizes) || over != 0) || !c.fits && (n != 0 || over != 1) {
			t.Errorf("%s: %d wait, and it has overflowed %d times", name, n, over)
		}
		if o.Put(1); c.fits != (len(o.Take()) == 1) {
			t.Errorf("%s: what comes after", name)
		}
	}
}
