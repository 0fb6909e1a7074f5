package negotiator

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestDisruptionsInherited holds that a new leader goes on with what its predecessors have spent of the budget of disruptions, also when its clock is
// behind theirs; and that the budget is whole again an hour later.
func TestDisruptionsInherited(t *testing.T) {
	now := time.Unix(1000, 0)
	c := leader(t, now, newInventory(), newRecord(func(uint64) {}))
	e := ledger.Entry{At: now.UnixNano(), Epoch: c.epoch, Commands: []ledger.Command{{
		Trusted: true, Verb: ledger.Set, Kind: ledger.KindSetting, Object: []byte(`{"name": "disruptions_per_cell", "value": "2"}`),
	}}}
	if err := c.record.Apply(0, e.Encode(nil)).(ledger.Result).Commands[0]; err != nil {
		t.Fatal(err)
	}
	var claims string
	for i := range 4 {
		claims += fmt.Sprintf(`[Id = %d; Owner = "bob"; Band = "free"; Cpus = 1; Job = "%d[0].s2"; Since = 900], `, i+1, i+1)
	}
	change := advertise.Change{
		Name: "n1", Sequence: 1, Started: 1, Ad: "[Cpus = 0; TotalCpus = 4; Claims = {" + claims[:len(claims)-2] + "}]",
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
	}
	c.machinesChanged(now, []machineNews{readMachine(now, change, c.log)}, true)

	// Production of a schedd wants all; how many grants does it get, each at the expense of a task?
	grants := func(name string, seen uint64) (n int) {
		mail := newMailbox()
		c.joined(now, &wire.ScheddHello{Name: name}, mail)
		if err := c.heard(now, name, mail, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
			Id: 1, Owner: "ann", Band: "production", Wanted: 4, GrantsSeen: &seen, Resources: wire.FromResources(roost.Resources{CPU: 1000}),
		}}}); err != nil {
			t.Fatal(err)
		}
		c.cycle(now)
		if d, ok := c.take(now); ok {
			commit(t, c, now, d)
		}
		messages, _, _ := mail.take()
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
	c = leader(t, now, c.inventory, c.record)
	if n := grants("s1", 0); n != 0 {
		t.Errorf("the next leader lets %d more tasks go", n)
	}
	now = now.Add(remembered + time.Minute)
	c = leader(t, now, c.inventory, c.record)
	if n := grants("s1", 0); n != 2 {
		t.Errorf("an hour later %d tasks may go", n)
	}
}
