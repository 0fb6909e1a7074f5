package pool

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/failpoint"
)

// TestSubmitToCrashingDaemon checks that users submit again when the daemon crashes while
// it handles their submissions, so that all jobs run.
func TestSubmitToCrashingDaemon(t *testing.T) {
	for _, inCell := range []bool{false, true} {
		c, crashes := cellPool(3, time.Second), 0
		for i := range c.Jobs {
			c.Jobs[i].InCell = inCell
		}
		var p *Pool
		var err error
		c.CrashesAt = func(node, point string) bool {
			if point != failpoint.ScheddBeforeAppend || crashes == 2 || p.Now() < time.Second {
				return false
			}
			crashes++
			p.CallAt(p.Now(), func() { p.Faults().CrashDaemon(node, time.Second) })
			return true
		}
		if p, err = New(c); err != nil {
			t.Fatal(err)
		}
		if !p.RunToEnd(time.Hour) || crashes != 2 {
			t.Errorf("in the cell's queue: %v: %d jobs are not over after %v and %d crashes", inCell, p.unfinished,
				p.Now(), crashes)
		}
	}
}
