package pool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestBlackHole checks that a machine that fails every task is drained after a few of
// them. It attracts the tasks of four arrays of two users. No other machine is drained,
// all tasks complete elsewhere, and on trial the machine gets few.
func TestBlackHole(t *testing.T) {
	for _, tt := range []struct{ machines, schedds, managers int }{{2, 1, 1}, {4, 2, 3}} {
		t.Run(fmt.Sprintf("%d machines, %d submit nodes", tt.machines, tt.schedds), func(t *testing.T) {
			c := SimulationConfig{Seed: 7, Managers: tt.managers, Schedds: tt.schedds, SelfCheck: true}
			for i := range tt.machines {
				c.Machines = append(c.Machines, MachineConfig{
					Name: fmt.Sprintf("n%d", i+1), Resources: roost.Resources{CPU: 8000, Memory: 16 << 30,
						Disk: 100 << 30}, FailsAll: i == tt.machines-1,
				})
			}
			const tasks = 150
			for i := range 4 {
				ad := classad.New()
				ad.SetInt(roost.AttrRequestCpus, 1)
				ad.SetInt(roost.AttrRequestMemory, 64)
				c.Jobs = append(c.Jobs, JobConfig{
					At: time.Second, Schedd: i % tt.schedds, Owner: fmt.Sprintf("user%d", i/2),
					Spec: queue.SubmitSpec{Ad: ad, Count: tasks}, Runtimes: []time.Duration{time.Second},
				})
			}
			p := playPool(t, c, time.Hour)
			hole := fmt.Sprintf("n%d", tt.machines)
			drained := 0
			p.managers[0].core.ViewLedger(func(l *ledger.Ledger) {
				for _, d := range l.Drains() {
					if drained++; d.Node != hole || !strings.HasPrefix(d.Reason, "drained by itself: ") {
						t.Errorf("%s is drained: %s", d.Node, d.Reason)
					}
				}
			})
			for i, o := range p.Outcomes() {
				if o.Attempts != tasks || o.Unfinished != 0 {
					t.Errorf("of array %d %d attempts ran, and %d tasks are open", i, o.Attempts, o.Unfinished)
				}
			}
			failed := p.machines[tt.machines-1].failedAttempts
			if t.Logf("it failed %d attempts", failed); drained != 1 || failed < 5 || failed > 40 {
				t.Errorf("%d machines are drained, and it failed %d attempts", drained, failed)
			}
		})
	}
}
