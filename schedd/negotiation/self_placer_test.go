package negotiation

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSelfPlacer checks that a schedd without a stream proposes what its stream would
// propose. It proposes nothing before the policy asks for proposals and the schedd knows
// all machines. Then it proposes what is free.
func TestSelfPlacer(t *testing.T) {
	now := time.Unix(1000, 0)
	propose := func(p *SelfPlacer) []*wire.Proposal {
		m := &wire.RequestUpdate{Id: 1, Wanted: 3, Owner: "ada", Resources: &wire.Resources{MilliCpu: 1000}, Ad: "[]"}
		p.Propose(now, []*wire.FromSchedd{{Of: &wire.FromSchedd_Request{Request: m}}})
		return m.GetProposals()
	}
	for _, asked := range []bool{false, true} {
		p := NewSelfPlacer("s")
		if asked {
			p.LeaderMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Distributed: true,
				Parts: 1}}})
		}
		ad, err := classad.Parse("[Cpus = 2; TotalCpus = 2]")
		if err != nil {
			t.Fatal(err)
		}
		if p.MachineUpdated("n", 1, 1, ad); propose(p) != nil {
			t.Errorf("asked %v: it proposes before it knows all machines", asked)
		}
		p.Synced()
		if got := propose(p); asked != (len(got) == 1 && got[0].GetNode() == "n" && got[0].GetUnits() == 2) ||
			!asked && got != nil {
			t.Errorf("asked %v: it proposes %v, and two units on n are free", asked, got)
		}
	}
}
