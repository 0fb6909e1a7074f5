package startd

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/gpuwatch"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/slot"
)

// newAdLoop returns a loop whose machine runs that many tasks of a service.
func newAdLoop(tb testing.TB, tasks int) *machineLoop {
	node := &config.Node{Name: "m1", FileSystemDomain: "m1"}
	settings := &config.StartdSettings{Name: "m1"}
	fixed, err := machineAd(node, settings, "boot", "10.0.0.1:9620")
	if err != nil {
		tb.Fatal(err)
	}
	total := roost.Resources{CPU: 64_000, Memory: 256 * roost.GiB, Disk: 1000 * roost.GiB}
	table := slot.New(slot.TableOptions{Ad: fixed, Disk: total.Disk,
		Units: []gpu.ResourceUnit{{CPU: total.CPU, Memory: total.Memory}}})
	host := &startdHost{node: node, config: settings, gpus: &gpuwatch.Monitor{}, meters: meter.New(meter.Options{}),
		ads: adclient.New(adclient.ClientConfig{Type: "Machine", Name: "m1"}), grantKey: make([]byte, 32)}
	l := newMachineLoop(host, table)
	now := boottime.Now()
	const session = 1
	if err := table.Connected(now, session, "pool", 1, 1); err != nil {
		tb.Fatal(err)
	}
	for i := range tasks {
		c, err := table.DecideClaim(now, slot.ClaimRequest{Session: session, Schedd: "pool", TokenValid: true,
			Grant: roost.GrantID{Epoch: 1, ID: uint64(i + 1)}, Owner: "ann", Lease: time.Hour, Class: gpu.StreamClass,
			Resources: roost.Resources{CPU: 10, Memory: roost.MiB}})
		if err != nil {
			tb.Fatal(err)
		}
		table.ClaimCreated(c.ID)
		id := roost.AttemptID{Task: roost.JobID{Seq: 12, Host: "pool"}.Task(i), Attempt: 1}
		if err := table.Activate(now, session, "pool", c.ID, id, slot.AttemptInfo{}); err != nil {
			tb.Fatal(err)
		}
		table.Started(now, c.ID, id)
		l.health[c.ID] = claim.HealthEvent{Claim: c.ID, ID: id, Name: "web", Revision: 1,
			Health: &wire.TaskHealth{Attempt: wire.FromAttempt(id), State: wire.HealthState_HEALTH_STATE_READY},
			Ports:  map[string]netip.AddrPort{"http": netip.MustParseAddrPort("10.0.0.1:20001")},
			Right: &wire.NameRight{ExpiresS: 1_800_000_000, Signature: make([]byte, 72),
				Certificate: make([]byte, 600)}}
	}
	table.Todo(now)
	return l
}

// BenchmarkMachineAd measures the ad of a machine on which the state of one task has
// changed.
func BenchmarkMachineAd(b *testing.B) {
	for _, tasks := range []int{10, 200, 1000} {
		b.Run(fmt.Sprint(tasks), func(b *testing.B) {
			l := newAdLoop(b, tasks)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				for id, h := range l.health {
					state := wire.HealthState_HEALTH_STATE_READY + wire.HealthState(n%2)
					h.Health = &wire.TaskHealth{Attempt: h.Health.GetAttempt(), State: state}
					l.health[id] = h
					break
				}
				l.publishAd(true)
			}
		})
	}
}
