package negotiator

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/wire"
)

// BenchmarkCycle measures a cycle after a change of one ad, with many full machines and
// waiting requests of ten users. It includes applying the change, the snapshot and the
// plan, but no explanations, since each comes once a second only.
func BenchmarkCycle(b *testing.B) {
	for _, size := range []struct {
		machines, requests int
	}{{1000, 100}, {10_000, 100}, {10_000, 1000}, {100_000, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size.machines, size.requests), func(b *testing.B) {
			c, now := benchCell(b, size.machines, size.requests)
			c.runCycle(now)
			sequence := 1
			for b.Loop() {
				sequence++
				c.updateMachines(now, []machineUpdate{benchMachineUpdate(c, sequence%size.machines, sequence)}, true)
				for _, s := range c.schedds { // explanations are measured elsewhere
					for _, r := range s.requests {
						r.explainedAt = now
					}
				}
				now = now.Add(time.Microsecond)
				c.runCycle(now)
			}
			if len(c.pendingByID) > 0 {
				b.Fatalf("%d grants", len(c.pendingByID))
			}
		})
	}
}

func benchCell(b *testing.B, machines, requests int) (*leaderState, time.Time) {
	now := time.Unix(1000, 0)
	c := commitLeader(b, now, newInventory(), newLedgerStore(func(uint64) {}))
	var all []machineUpdate
	for i := range machines {
		all = append(all, benchMachineUpdate(c, i, 1))
	}
	c.updateMachines(now, all, true)
	mail := newSendQueue()
	c.addStream(now, &wire.ScheddHello{Name: "s"}, mail)
	for i := range requests {
		u := &wire.RequestUpdate{
			Id: uint64(i + 1), Owner: fmt.Sprintf("user%d", i%10), Wanted: 100, Oldest: int64(i),
			Resources: wire.FromResources(roost.Resources{CPU: roost.MilliCPU(i%4+1) * 1000,
				Memory: roost.Bytes(i%7+1) * roost.GiB}),
			Ad: fmt.Sprintf(
				`[Requirements = TARGET.Arch == "X86_64" && TARGET.Generation >= %d; Rank = TARGET.Generation]`, i%5,
			),
		}
		if err := c.handleMessage(now, "s", mail,
			&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: u}}); err != nil {
			b.Fatal(err)
		}
	}
	return c, now
}

func benchMachineUpdate(c *leaderState, i, sequence int) machineUpdate {
	name := fmt.Sprintf("node%06d", i)
	return parseMachineUpdate(time.Time{}, adclient.AdChange{
		Name: name, Sequence: uint64(sequence), Started: 1,
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
		Ad: fmt.Sprintf(`[Name = "%s"; MyAddress = "unix:/x"; Arch = "X86_64"; OpSys = "LINUX"; Generation = %d; Cpus = 0; TotalCpus = 16; Memory = 100;
			TotalMemory = 65536; LoadAvg = %d.5; Start = TARGET.RequestCpus <= TotalCpus; Requirements = Start]`, name, i%10, sequence%100),
	}, c.log)
}
