package negotiator

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// callerStream is the session of a caller with one request.
type callerStream struct {
	recordingStream
	ctx     context.Context
	waiting []*wire.FromSchedd
}

func (c *callerStream) Context() context.Context { return c.ctx }

func (c *callerStream) Recv() (*wire.FromSchedd, error) {
	if len(c.waiting) == 0 {
		<-c.ctx.Done()
		return nil, c.ctx.Err()
	}
	m := c.waiting[0]
	c.waiting = c.waiting[1:]
	return m, nil
}

// TestPortRights checks whose right to a static port a grant confers. Only ann of n1 has
// that right. Others try to borrow it, by the name of the user or of the submit node.
func TestPortRights(t *testing.T) {
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	member := peer.Peer{Name: "c1", Certified: []peer.Role{peer.Schedd, peer.CellQueue}, CellQueue: "pool"}
	for _, test := range []struct {
		what                      string
		caller                    peer.Peer
		schedd, owner, submitHost string
		want                      bool
	}{
		{"the submit node", node("n1"), "n1", "ann", "", true},
		{"the queue of the cell, for ann of n1", member, "pool", "ann", "n1", true},
		{"the queue of the cell, for ann of n2", member, "pool", "ann", "n2", false},
		{"the queue of the cell, for bob of n1", member, "pool", "bob", "n1", false},
		{"the queue of the cell, without a node", member, "pool", "ann", "", false},
		{"another submit node", node("n2"), "n2", "ann", "", false},
		{"another submit node that names n1", node("n2"), "n2", "ann", "n1", false},
		{"a member's own schedd that names n1", member, "c1", "ann", "n1", false},
	} {
		t.Run(test.what, func(t *testing.T) {
			runLoopTest(t, 4, func(b *loopTest) {
				b.changeLeadership(replica.LeadershipChange{IsLeader: true, Term: 1})
				give := ledger.AdminCommand{Trusted: true, Verb: ledger.VerbSet, Kind: ledger.KindAdmin,
					Object: fmt.Appendf(nil, `{"who": "ann@n1", "capabilities": [%q]}`, roost.CapabilityStaticPorts)}
				entry := ledger.LogEntry{At: time.Now().UnixNano(), Epoch: b.cell.epoch,
					Commands: []ledger.AdminCommand{give}}
				if err := b.log.ledgerStore.Apply(0, entry.Encode(nil)).(ledger.EntryResult).Commands[0]; err != nil {
					b.Fatal(err)
				}
				ad := fmt.Sprintf(`[PortCapabilities = {%q}; SubmitHost = %q]`, roost.CapabilityStaticPorts,
					test.submitHost)
				ctx, cancel := context.WithCancel(callerContext(test.caller))
				stream := &callerStream{ctx: ctx, waiting: []*wire.FromSchedd{
					{Of: &wire.FromSchedd_Hello{Hello: &wire.ScheddHello{Name: test.schedd}}},
					{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{Id: 1, Owner: test.owner, Wanted: 1,
						Resources: wire.FromResources(roost.Resources{CPU: 1000}), Ad: ad}}}}}
				s := &grpcService{loop: b.decisionLoop, log: slog.New(slog.DiscardHandler),
					verifyLeader: func(context.Context) error { return nil }}
				ended := make(chan error)
				go func() { ended <- s.Negotiate(stream) }()
				time.Sleep(time.Second)
				synctest.Wait()
				cancel()
				<-ended
				grants := 0
				for _, m := range stream.sent {
					if g := m.GetGrant(); g != nil {
						grants++
						if got := slices.Contains(g.GetPortRights(), roost.CapabilityStaticPorts); got != test.want {
							b.Errorf("the grant has the right: %v, want %v", got, test.want)
						}
					}
				}
				if grants != 1 {
					b.Errorf("%d grants, want one", grants)
				}
			})
		})
	}
}
