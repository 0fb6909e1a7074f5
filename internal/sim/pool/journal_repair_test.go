package pool

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/failpoint"
)

// TestReleaseIsLost has the schedd crash before the release of a repaired job is on its
// disk. The administrator releases the job again, and it ends.
func TestReleaseIsLost(t *testing.T) {
	c, crashes := cellPool(0, 30*time.Second), 0
	for i := range c.Jobs {
		c.Jobs[i].InCell = false
	}
	var p *Pool
	released := func() bool {
		for i := range p.users {
			if p.users[i].releases > 0 {
				return true
			}
		}
		return false
	}
	c.CrashesAt = func(node, point string) bool {
		if point != failpoint.ScheddBeforeAppend || crashes > 0 || !released() {
			return false
		}
		crashes++
		p.CallAt(p.Now(), func() { p.Faults().CrashDaemon(node, time.Second) })
		return true
	}
	var err error
	if p, err = New(c); err != nil {
		t.Fatal(err)
	}
	p.CallAt(10*time.Second, func() { p.Faults().FlipBit("schedd0", 0, time.Second) })
	if !p.RunToEnd(4*time.Hour) || crashes != 1 {
		t.Errorf("%d jobs are not over after %v and %d crashes", p.unfinished, p.Now(), crashes)
	}
}
