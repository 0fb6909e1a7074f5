package schedd

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/wire"
)

// placing is a placer between an outbox and a stream that a test reads.
type placing struct {
	*placer
	out   *outbox[*wire.FromSchedd]
	sent  chan *wire.FromSchedd
	apply func([]advertise.Change, bool) // nil: nobody watches
}

func newPlacing(t *testing.T) *placing {
	p := &placing{placer: newPlacer("s", slog.New(slog.DiscardHandler)), out: newOutbox[*wire.FromSchedd](), sent: make(chan *wire.FromSchedd, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go p.keep(ctx, func(ctx context.Context, apply func([]advertise.Change, bool)) {
		p.apply = apply
		<-ctx.Done()
		p.apply = nil
	})
	go p.out.pumpAll(ctx, func(all []*wire.FromSchedd) error {
		return p.send(all, func(m *wire.FromSchedd) error { p.sent <- m; return nil })
	})
	return p
}

func (p *placing) rule(distributed bool) {
	p.hear(&wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Distributed: distributed, Parts: 1}}})
	synctest.Wait()
}

func (p *placing) machine(name string, sequence uint64, cpus int) {
	p.apply([]advertise.Change{{Name: name, Started: 1, Sequence: sequence, Ad: fmt.Sprintf("[Name = %q; TotalCpus = %d; Cpus = %d]", name, cpus, cpus)}}, true)
}

func ask(id uint64, n uint32) *wire.FromSchedd {
	return &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: id, Owner: "ann", Wanted: n, Ad: "[]", Resources: wire.FromResources(roost.Resources{CPU: 1000}),
	}}}
}

func (p *placing) next() *wire.FromSchedd {
	synctest.Wait()
	return <-p.sent
}

// TestPlacer holds that proposals go with what is wanted while the leader wishes it, that nothing changes its place in the row, and that a grant which was
// heard before is counted though the loop has not answered it yet.
func TestPlacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlacing(t)
		p.out.put(ask(1, 2))
		if got := p.next().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("nobody wished it: %v", got)
		}
		p.rule(true)
		p.out.put(ask(1, 2))
		if got := p.next().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("no machine is known: %v", got)
		}
		p.machine("a", 1, 2)
		result := &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{Grant: 9}}}
		p.out.put(ask(1, 2), result, ask(2, 0), ask(3, 1))
		first := p.next().GetRequest()
		if list := first.GetProposals(); len(list) != 1 || list[0].GetNode() != "a" || list[0].GetUnits() != 2 {
			t.Errorf("%v", first)
		}
		if m := p.next(); m != result {
			t.Errorf("the order has changed: %v", m)
		}
		if p.next(); len(p.next().GetRequest().GetProposals()) != 0 {
			t.Error("what is taken is proposed again")
		}
		for id := range uint64(2) {
			p.hear(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{Id: id, Request: 1, Node: "a", Resources: wire.FromResources(roost.Resources{CPU: 1000})}}})
		}
		time.Sleep(2 * time.Second)
		p.out.put(ask(3, 1))
		if got := p.next().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("what was granted is proposed: %v", got)
		}
		p.machine("b", 1, 1)
		p.out.put(ask(3, 1))
		if list := p.next().GetRequest().GetProposals(); len(list) != 1 || list[0].GetNode() != "b" {
			t.Errorf("%v", list)
		}
		p.rule(false)
		if p.apply != nil {
			t.Error("the machines are watched though nobody wishes it")
		}
		p.out.put(ask(3, 1))
		if got := p.next().GetRequest(); len(got.GetProposals()) != 0 {
			t.Errorf("nobody wishes it any more: %v", got)
		}
		p.rule(true)
		p.machine("c", 1, 4)
		p.out.put(ask(3, 2))
		if list := p.next().GetRequest().GetProposals(); len(list) != 1 || list[0].GetNode() != "c" {
			t.Errorf("a new copy begins with what is there: %v", list)
		}
	})
}
