package schedd

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/propose"
)

// placer places batch requests on a copy of the cell, where the leader of the negotiators wants schedds to do that. It stands between the loop and the
// stream to the leader: the loop puts in what it has to say and goes on; the stream's writer has places proposed for what asks for any, and sends
// everything in its order. What is heard meanwhile, of machines and of grants, waits until then: of each machine the latest news only.
type placer struct {
	schedd string
	log    *slog.Logger
	rules  chan struct{} // has room for one: the rules have changed

	mu       sync.Mutex
	policy   *wire.Policy // nil: schedds do not place
	machines map[string]machineNews
	synced   bool
	told     []*wire.ToSchedd // grants
	lost     bool             // the machines that were known are not followed any more

	planning sync.Mutex    // only writers take it, one conversation after the other
	copy     *propose.Copy // nil: there is none
}

// machineNews is the latest of one machine; without an ad it is gone.
type machineNews struct {
	started  int64
	sequence uint64
	ad       *classad.Ad
}

func newPlacer(schedd string, log *slog.Logger) *placer {
	return &placer{schedd: schedd, log: log, rules: make(chan struct{}, 1), machines: map[string]machineNews{}}
}

// keep watches the machines for as long as schedds are to place, until ctx ends.
func (p *placer) keep(ctx context.Context, watch func(ctx context.Context, apply func([]advertise.Change, bool))) {
	stop := func() {}
	defer func() { stop() }()
	watching := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.rules:
		}
		p.mu.Lock()
		on := p.policy != nil
		p.mu.Unlock()
		switch {
		case on && !watching:
			own, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				watch(own, p.changed)
			}()
			stop = func() { cancel(); <-done }
		case !on && watching:
			stop()
			stop = func() {}
			p.mu.Lock()
			p.machines, p.synced, p.lost = map[string]machineNews{}, false, true
			p.mu.Unlock()
		}
		watching = on
	}
}

// watchMachines follows the machines at the collectors until ctx ends.
func (s *Schedd) watchMachines(ctx context.Context, apply func([]advertise.Change, bool)) {
	w := advertise.Watcher{Collectors: s.node.Collectors, Identity: s.identity, Type: "Machine", Log: s.log, Apply: apply}
	w.Run(ctx)
}

// changed takes in what the collectors say.
func (p *placer) changed(all []advertise.Change, synced bool) {
	news := make([]machineNews, len(all))
	for i, c := range all {
		if news[i] = (machineNews{started: c.Started, sequence: c.Sequence}); c.Removed {
			continue
		}
		ad, err := classad.Parse(c.Ad)
		if err != nil {
			p.log.Warn("machine ad makes no sense", "machine", c.Name, "error", err)
			continue
		}
		news[i].ad = ad
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range all {
		p.machines[c.Name] = news[i]
	}
	p.synced = p.synced || synced
}

// hear takes in what the leader says, as far as it matters here.
func (p *placer) hear(m *wire.ToSchedd) {
	switch of := m.GetOf().(type) {
	case *wire.ToSchedd_Policy:
		p.mu.Lock()
		if p.policy = nil; of.Policy.GetDistributed() {
			p.policy = of.Policy
		}
		p.mu.Unlock()
		select {
		case p.rules <- struct{}{}:
		default:
		}
	case *wire.ToSchedd_Grant:
		p.mu.Lock()
		if p.policy != nil && len(p.told) < maxTold {
			p.told = append(p.told, m)
		}
		p.mu.Unlock()
	}
}

// maxTold bounds the grants that wait to be taken in. Each is soon answered, and taken in before the answer is sent.
const maxTold = 65536

// send proposes places for those of the messages that ask for any, and sends all in their order.
func (p *placer) send(all []*wire.FromSchedd, send func(*wire.FromSchedd) error) error {
	p.propose(time.Now(), all)
	for _, m := range all {
		if err := rpc.Deliverable(m); err != nil {
			p.log.Warn("a message to the negotiator cannot be sent", "error", err)
			continue
		}
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}

// propose writes proposals into messages that nobody else has yet.
func (p *placer) propose(now time.Time, all []*wire.FromSchedd) {
	p.planning.Lock()
	defer p.planning.Unlock()
	if !p.catchUp(now) {
		return
	}
	var updates []propose.Update
	var of []*wire.RequestUpdate
	for _, m := range all {
		switch m := m.GetOf().(type) {
		case *wire.FromSchedd_Request:
			if m.Request.GetNow() { // the leader places it before all others
				continue
			}
			updates, of = append(updates, updateOf(m.Request)), append(of, m.Request)
		case *wire.FromSchedd_Result:
			r := m.Result
			p.copy.Answered(now, r.GetGrant(), r.GetClaimed(), r.GetWaiting(), r.GetAdSequence())
		}
	}
	if len(updates) == 0 {
		return
	}
	for i, list := range p.copy.Propose(now, updates) {
		for _, one := range list {
			of[i].Proposals = append(of[i].Proposals, &wire.Proposal{Node: one.Machine, Units: uint32(one.Units), Waiting: one.Waiting})
		}
	}
}

// catchUp brings the copy up to date with what was heard, and reports whether there is one.
func (p *placer) catchUp(now time.Time) bool {
	p.mu.Lock()
	policy, machines, synced, told, lost := p.policy, p.machines, p.synced, p.told, p.lost
	p.machines, p.told, p.lost = map[string]machineNews{}, nil, false
	p.mu.Unlock()
	if lost || policy == nil {
		p.copy = nil
	}
	if policy == nil {
		return false
	}
	if p.copy == nil {
		p.copy = propose.New(p.schedd)
	}
	p.copy.Rule(int(policy.GetPart()), int(policy.GetParts()))
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		c := machines[name]
		p.copy.Machine(name, c.started, c.sequence, c.ad)
	}
	if synced {
		p.copy.Synced()
	}
	for _, m := range told {
		g := m.GetGrant()
		p.copy.Granted(now, propose.Grant{ID: g.GetId(), Request: g.GetRequest(), Machine: g.GetNode(), Resources: g.GetResources().Vector(), Waiting: g.GetWaiting()})
	}
	return true
}

// updateOf is what the leader is told of a request, in the copy's words.
func updateOf(m *wire.RequestUpdate) propose.Update {
	band := roost.Batch
	if b, err := roost.ParseBand(m.GetBand()); err == nil {
		band = b
	}
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	return propose.Update{
		ID: m.GetId(), Owner: m.GetOwner(), Group: m.GetGroup(), Band: band, Priority: m.GetPriority(), Oldest: m.GetOldest(),
		Wanted: int(m.GetWanted()), NoWait: int(m.GetNoWait()), Resources: m.GetResources().Vector(), Ad: m.GetAd(), Gang: int(m.GetGang()),
		Reservation: m.GetReservation(), Walltime: seconds(m.GetWalltimeS()), Predicted: seconds(m.GetPredictedS()),
		Gone: m.GetWanted() == 0 && m.GetClaims() == 0,
	}
}
