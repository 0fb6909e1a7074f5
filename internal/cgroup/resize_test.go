package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
)

// TestResize makes a group larger, and smaller as far as its processes allow. They live
// on.
func TestResize(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Memory && h.Enforcement().CPU, "memory and CPU time")
	small, large := GroupLimits{Weight: 20, Quota: 500, Memory: 48 * roost.MiB},
		GroupLimits{Weight: 40, Quota: 1000, Memory: 128 * roost.MiB}
	tiny := small
	tiny.Memory = 4 * roost.MiB
	g := testGroup(t, h, "1", small)
	file := filepath.Join(t.TempDir(), "holds")
	p := startIn(t, g, "( head -c 30000000 /dev/zero; echo >"+file+"; while :; do sleep 0.1; done ) | tail >/dev/null")
	p.release(t)
	waitUntil(t, "it holds its memory", func() bool { _, err := os.Stat(file); return err == nil })
	if err := g.Resize(small, large); err != nil {
		t.Fatal(err)
	}
	if got := g.memoryLimit(); got != large.Memory {
		t.Errorf("the limit is %v after it grew", got)
	}
	if err := g.Resize(large, tiny); !errors.Is(err, roost.Conflict) {
		t.Errorf("less than it uses: %v", err)
	}
	if got := g.memoryLimit(); got != large.Memory {
		t.Errorf("the limit is %v after it was refused", got)
	}
	if err := g.Resize(large, small); err != nil {
		t.Fatal(err)
	}
	if got := g.memoryLimit(); got != small.Memory {
		t.Errorf("the limit is %v after it shrank", got)
	}
	if u, err := g.Usage(); err != nil || u.Kills != 0 || u.Frozen || u.Memory < 25*roost.MiB {
		t.Errorf("%+v, %v", u, err)
	}
}
