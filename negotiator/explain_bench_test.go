package negotiator

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// BenchmarkWhy measures the answer to why a request waits, until it is in the schedd's
// send queue. A thousand requests wait for many reasons, on machines with realistic ads
// and claims. Nine others are explained in the same cycle.
func BenchmarkWhy(b *testing.B) {
	for _, size := range []struct{ machines, requests int }{{1000, 1000}, {10_000, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", size.machines, size.requests), func(b *testing.B) {
			c, mail, now := waitingCell(b, size.machines, size.requests)
			c.runCycle(now)
			var longest time.Duration
			id, sequence := 0, 1
			for b.Loop() {
				id = id%size.requests + 1
				sequence++
				c.updateMachines(now, []machineUpdate{waitingMachineUpdate(c, sequence%size.machines, sequence)}, true)
				now = now.Add(100 * time.Millisecond)
				mail.messages = nil
				began := time.Now()
				if err := c.handleMessage(now, "s", mail,
					&wire.FromSchedd{Of: &wire.FromSchedd_Why{Why: &wire.WhyWaiting{Request: uint64(id)}}}); err !=
					nil {
					b.Fatal(err)
				}
				c.runCycle(now)
				longest = max(longest, time.Since(began))
				if !waitForExplanation(mail, uint64(id)) {
					b.Fatalf("no answer about %d", id)
				}
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
		})
	}
}

func waitForExplanation(mail *sendQueue, id uint64) bool {
	for _, m := range mail.messages {
		if u := m.GetUnplaced(); u != nil && u.GetRequest() == id && u.GetExplanation().GetBrief() != "" {
			return true
		}
	}
	return false
}

// waitingCell returns a full pool in which tasks have started for ten minutes.
func waitingCell(b *testing.B, machines, requests int) (*leaderState, *sendQueue, time.Time) {
	now := time.Unix(100_000, 0)
	c := commitLeader(b, now, newInventory(), newLedgerStore(func(uint64) {}))
	var all []machineUpdate
	for i := range machines {
		all = append(all, waitingMachineUpdate(c, i, 1))
	}
	c.updateMachines(now, all, true)
	mail := newSendQueue()
	c.addStream(now, &wire.ScheddHello{Name: "s"}, mail)
	requirements := []string{
		`TARGET.Arch == "X86_64"`, `TARGET.Generation >= 7 && TARGET.OpSys == "LINUX"`, `TARGET.Arch == "aarch64"`,
		`TARGET.HasMatlab`,
		`TARGET.Memory >= 65536 && TARGET.Generation >= 3`, `regexp("^node0001", TARGET.Name)`,
		`stringListMember("fast", TARGET.Tags)`,
		`(TARGET.Generation == 3 || TARGET.Generation == 4) && TARGET.Rack =!= "r7"`,
		`TARGET.TotalGpus >= 1 && TARGET.CUDACapability >= 8.0`,
	}
	for i := range requests {
		u := &wire.RequestUpdate{
			Id: uint64(i + 1), Owner: fmt.Sprintf("user%d", i%50), Wanted: 100, Oldest: int64(i),
			WalltimeS: int64(i%5) * 3600,
			Resources: wire.FromResources(roost.Resources{CPU: roost.MilliCPU(i%24+1) * 1000,
				Memory: roost.Bytes(i%70+1) * roost.GiB}),
			Ad: fmt.Sprintf(`[Requirements = %s && TARGET.TotalCpus >= %d; Rank = TARGET.Generation]`,
				requirements[i%len(requirements)], i%20),
		}
		if err := c.handleMessage(now, "s", mail,
			&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: u}}); err != nil {
			b.Fatal(err)
		}
	}
	c.runCycle(now)
	for i := range maxStarts {
		r := &match.Request{Class: &match.RequestClass{Resources: roost.Resources{CPU: roost.MilliCPU(i%4+1) * 1000,
			Memory: roost.GiB}}}
		g := &match.Grant{Request: r, Machine: &match.Machine{Name: fmt.Sprintf("node%06d", i*7%machines)}, Units: 1}
		c.recentStarts.addStart(now.Add(time.Duration(i)*startsMemory/maxStarts), g)
	}
	return c, mail, now.Add(startsMemory)
}

func waitingMachineUpdate(c *leaderState, i, sequence int) machineUpdate {
	name := fmt.Sprintf("node%06d", i)
	var claims strings.Builder
	for k := range 8 {
		fmt.Fprintf(&claims,
			`[Id = %d; Owner = "user%d"; Band = "batch"; Cpus = 2; Memory = 4096; Since = %d; Ends = %d; Job = "%d[%d].s"],`,
			k+1, k, 99_000-i%1000, 101_000+(i*13+k*997)%90_000, i, k)
	}
	var more strings.Builder
	for k := range 30 {
		fmt.Fprintf(&more, `Attribute%d = "value %d of %d"; `, k, i%7, k)
	}
	return parseMachineUpdate(time.Time{}, adclient.AdChange{
		Name: name, Sequence: uint64(sequence), Started: 1,
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
		Ad: fmt.Sprintf(`[Name = "%s"; MyAddress = "unix:/x"; Arch = "X86_64"; OpSys = "LINUX"; Generation = %d; Rack = "r%d"; Tags = "%s"; Cpus = 0; TotalCpus = 16;
			Memory = 32768; TotalMemory = 65536; LoadAvg = %d.5; Start = TARGET.RequestCpus <= TotalCpus && LoadAvg < 99; Requirements = Start; %s
			Claims = {%s}]`, name, i%10, i%40, []string{"fast,new", "slow"}[i%2], sequence%100, more.String(), strings.TrimSuffix(claims.String(), ",")),
	}, c.log)
}
