package negotiator

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestPolicyConfirmed checks that a change waits for each schedd that confirms policies,
// until it has done so or has gone.
func TestPolicyConfirmed(t *testing.T) {
	p := newCollectorTest(t)
	p.startNegotiator()
	p.joinSchedd("old") // confirms nothing
	stays, _ := p.joinAs(&wire.ScheddHello{Name: "stays", ConfirmsPolicy: true})
	leaves, _ := p.joinAs(&wire.ScheddHello{Name: "leaves", ConfirmsPolicy: true})
	set := func(name string) (*policyWaiter, []string) {
		t.Helper()
		if err := p.server.commitCommand(t.Context(), ledger.AdminCommand{Who: "root@c", Trusted: true,
			Verb: ledger.VerbSet, Kind: ledger.KindQueue, Name: name, Object: []byte(`{"name":"` + name + `"}`), Whole: true}); err != nil {
			t.Fatal(err)
		}
		var one *policyWaiter
		var missing []string
		if err := p.server.runInLoop(t.Context(), func(time.Time) {
			one = p.server.cell.addPolicyWaiter()
			for name := range one.missing {
				missing = append(missing, name)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return one, missing
	}
	one, missing := set("night")
	if len(missing) != 2 {
		t.Errorf("the change waits for %q", missing)
	}
	confirm := func(queue string) {
		t.Helper()
		for {
			m := p.receiveMessage(stays).GetPolicy()
			for _, q := range m.GetQueues() {
				if q.GetName() == queue {
					p.sendMessage(stays, &wire.FromSchedd{Of: &wire.FromSchedd_PolicySeen{
						PolicySeen: &wire.PolicySeen{Version: m.GetVersion()}}})
					return
				}
			}
		}
	}
	confirm("night")
	if err := leaves.CloseSend(); err != nil {
		t.Fatal(err)
	}
	<-one.done
	if one, missing = set("day"); len(missing) != 1 || missing[0] != "stays" {
		t.Errorf("the next change waits for %q", missing)
	}
	confirm("day")
	<-one.done
}
