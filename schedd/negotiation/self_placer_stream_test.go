package negotiation

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
)

// selfPlacerTest is a placer between an outbox and a stream that a test reads.
type selfPlacerTest struct {
	*selfPlacer
	out   *sendqueue.Queue[*wire.FromSchedd]
	sent  chan *wire.FromSchedd
	apply func([]adclient.AdChange, bool) // nil: nobody watches
}

func newSelfPlacerTest(t *testing.T) *selfPlacerTest {
	p := &selfPlacerTest{selfPlacer: newSelfPlacer("s", slog.New(slog.DiscardHandler)),
		out: sendqueue.New[*wire.FromSchedd](), sent: make(chan *wire.FromSchedd, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go p.watchMachines(ctx, func(ctx context.Context, apply func([]adclient.AdChange, bool)) {
		p.apply = apply
		<-ctx.Done()
		p.apply = nil
	})
	go p.out.SendAll(ctx, func(all []*wire.FromSchedd) error {
		return p.sendWithProposals(all, func(m *wire.FromSchedd) error { p.sent <- m; return nil })
	})
	return p
}

func (p *selfPlacerTest) setPolicy(distributed bool) {
	p.onLeaderMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Distributed: distributed,
		Parts: 1}}})
	synctest.Wait()
}

func (p *selfPlacerTest) machine(name string, sequence uint64, cpus int) {
	p.apply([]adclient.AdChange{{Name: name, Started: 1, Sequence: sequence,
		Ad: fmt.Sprintf("[Name = %q; TotalCpus = %d; Cpus = %d]", name, cpus, cpus)}}, true)
}

func ask(id uint64, n uint32) *wire.FromSchedd {
	return &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: id, Owner: "ann", Wanted: n, Ad: "[]", Resources: wire.FromResources(roost.Resources{CPU: 1000}),
	}}}
}

func (p *selfPlacerTest) nextMessage() *wire.FromSchedd {
	synctest.Wait()
	return <-p.sent
}

// TestSelfPlacerStream checks that requests carry proposals while the leader wants them.
// All messages stay in their order. A grant that arrived before counts, though the loop
// has not answered it yet.
func TestSelfPlacerStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSelfPlacerTest(t)
		p.out.Put(ask(1, 2))
		if got := p.nextMessage().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("nobody wished it: %v", got)
		}
		p.setPolicy(true)
		p.out.Put(ask(1, 2))
		if got := p.nextMessage().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("no machine is known: %v", got)
		}
		p.machine("a", 1, 2)
		result := &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{Grant: 9}}}
		p.out.Put(ask(1, 2), result, ask(2, 0), ask(3, 1))
		first := p.nextMessage().GetRequest()
		if list := first.GetProposals(); len(list) != 1 || list[0].GetNode() != "a" || list[0].GetUnits() != 2 {
			t.Errorf("%v", first)
		}
		if m := p.nextMessage(); m != result {
			t.Errorf("the order has changed: %v", m)
		}
		if p.nextMessage(); len(p.nextMessage().GetRequest().GetProposals()) != 0 {
			t.Error("what is taken is proposed again")
		}
		for id := range uint64(2) {
			p.onLeaderMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{Id: id, Request: 1, Node: "a",
				Resources: wire.FromResources(roost.Resources{CPU: 1000})}}})
		}
		time.Sleep(2 * time.Second)
		p.out.Put(ask(3, 1))
		if got := p.nextMessage().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("what was granted is proposed: %v", got)
		}
		p.machine("b", 1, 1)
		p.out.Put(ask(3, 1))
		if list := p.nextMessage().GetRequest().GetProposals(); len(list) != 1 || list[0].GetNode() != "b" {
			t.Errorf("%v", list)
		}
		p.setPolicy(false)
		if p.apply != nil {
			t.Error("the machines are watched though nobody wishes it")
		}
		p.out.Put(ask(3, 1))
		if got := p.nextMessage().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("nobody wishes it any more: %v", got)
		}
		p.setPolicy(true)
		p.machine("c", 1, 4)
		p.out.Put(ask(3, 2))
		if list := p.nextMessage().GetRequest().GetProposals(); len(list) != 1 || list[0].GetNode() != "c" {
			t.Errorf("a new copy begins with what is there: %v", list)
		}
	})
}
