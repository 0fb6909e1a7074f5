package negotiator

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestEvictionsLoadedFromLedger checks that a new leader continues its predecessors'
// disruption budget, also if its clock is behind theirs. An hour later the budget is full
// again.
func TestEvictionsLoadedFromLedger(t *testing.T) {
	now := time.Unix(1000, 0)
	c := commitLeader(t, now, newInventory(), newLedgerStore(func(uint64) {}))
	e := ledger.LogEntry{At: now.UnixNano(), Epoch: c.epoch, Commands: []ledger.AdminCommand{{
		Trusted: true, Verb: ledger.VerbSet, Kind: ledger.KindSetting,
		Object: []byte(`{"name": "disruptions_per_cell", "value": "2"}`),
	}}}
	if err := c.ledgerStore.Apply(0, e.Encode(nil)).(ledger.EntryResult).Commands[0]; err != nil {
		t.Fatal(err)
	}
	var claims string
	for i := range 4 {
		claims += fmt.Sprintf(`[Id = %d; Owner = "bob"; Band = "free"; Cpus = 1; Job = "%d[0].s2"; Since = 900], `,
			i+1, i+1)
	}
	change := adclient.AdChange{
		Name: "n1", Sequence: 1, Started: 1, Ad: "[Cpus = 0; TotalCpus = 4; Claims = {" + claims[:len(claims)-2] + "}]",
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
	}
	c.updateMachines(now, []machineUpdate{parseMachineUpdate(now, change, c.log)}, true)

	// Production of a schedd wants all cores; each grant has a victim.
	grants := func(name string, seen uint64) (n int) {
		mail := newSendQueue()
		c.addStream(now, &wire.ScheddHello{Name: name}, mail)
		if err := c.handleMessage(now, name, mail,
			&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
				Id: 1, Owner: "ann", Band: "production", Wanted: 4, GrantsSeen: &seen,
				Resources: wire.FromResources(roost.Resources{CPU: 1000}),
			}}}); err != nil {
			t.Fatal(err)
		}
		c.runCycle(now)
		if d, ok := c.takePendingEntry(now); ok {
			commitEntry(t, c, now, d)
		}
		messages, _, _ := mail.takeAll()
		for _, m := range messages {
			if len(m.GetGrant().GetVictims()) > 0 {
				n++
			}
		}
		return n
	}
	if n := grants("s1", 0); n != 2 {
		t.Fatalf("the first leader lets %d tasks go, and 2 may", n)
	}
	now = now.Add(-30 * time.Second) // by the next leader's clock
	c = commitLeader(t, now, c.machineInventory, c.ledgerStore)
	if n := grants("s1", 0); n != 0 {
		t.Errorf("the next leader lets %d more tasks go", n)
	}
	now = now.Add(evictionMemory + time.Minute)
	c = commitLeader(t, now, c.machineInventory, c.ledgerStore)
	if n := grants("s1", 0); n != 2 {
		t.Errorf("an hour later %d tasks may go", n)
	}
}
