package negotiation

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/selfplace"
)

// selfPlacer places batch requests on a copy of the cell, if the leader wants schedds to
// do that. It is between the loop and the stream to the leader. The loop enqueues its
// messages and goes on. The stream's writer adds proposals to the requests that ask for
// machines, and sends all messages in their order. News of machines and grants that
// arrive meanwhile wait until then. Of each machine only the latest news waits.
type selfPlacer struct {
	schedd        string
	log           *slog.Logger
	policyChanged chan struct{} // has room for one: the rules have changed

	mu        sync.Mutex
	policy    *wire.Policy // nil: schedds do not place
	machines  map[string]machineUpdate
	synced    bool
	grants    []*wire.ToSchedd // grants
	watchLost bool             // the machines that were known are not followed any more

	proposeMu sync.Mutex          // only writers take it, one conversation after the other
	copy      *selfplace.CellCopy // nil: there is none
}

// machineUpdate is the latest of one machine; without an ad it is gone.
type machineUpdate struct {
	started  int64
	sequence uint64
	ad       *classad.Ad
}

func newSelfPlacer(schedd string, log *slog.Logger) *selfPlacer {
	return &selfPlacer{schedd: schedd, log: log, policyChanged: make(chan struct{}, 1),
		machines: map[string]machineUpdate{}}
}

// watchMachines watches the machines for as long as schedds are to place, until ctx ends.
func (p *selfPlacer) watchMachines(ctx context.Context,
	watch func(ctx context.Context, apply func([]adclient.AdChange, bool))) {
	stop := func() {}
	defer func() { stop() }()
	watching := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.policyChanged:
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
				watch(own, p.onAdChanged)
			}()
			stop = func() { cancel(); <-done }
		case !on && watching:
			stop()
			stop = func() {}
			p.mu.Lock()
			p.machines, p.synced, p.watchLost = map[string]machineUpdate{}, false, true
			p.mu.Unlock()
		}
		watching = on
	}
}

// WatchMachines follows the machines at the collectors for as long as schedds are to
// place, until ctx ends.
func (l *LeaderConn) WatchMachines(ctx context.Context, collectors []string) {
	l.placer.watchMachines(ctx, func(ctx context.Context, apply func([]adclient.AdChange, bool)) {
		w := adclient.AdWatcher{Collectors: collectors, Identity: l.identity, Type: "Machine", Log: l.log, Apply: apply}
		w.Run(ctx)
	})
}

// onAdChanged takes in what the collectors say.
func (p *selfPlacer) onAdChanged(all []adclient.AdChange, synced bool) {
	event := make([]machineUpdate, len(all))
	for i, c := range all {
		if event[i] = (machineUpdate{started: c.Started, sequence: c.Sequence}); c.Removed {
			continue
		}
		ad, err := classad.Parse(c.Ad)
		if err != nil {
			p.log.Warn("machine ad makes no sense", "machine", c.Name, "error", err)
			continue
		}
		event[i].ad = ad
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range all {
		p.machines[c.Name] = event[i]
	}
	p.synced = p.synced || synced
}

// onLeaderMessage takes in what the leader says, as far as it matters here.
func (p *selfPlacer) onLeaderMessage(m *wire.ToSchedd) {
	switch of := m.GetOf().(type) {
	case *wire.ToSchedd_Policy:
		p.mu.Lock()
		if p.policy = nil; of.Policy.GetDistributed() {
			p.policy = of.Policy
		}
		p.mu.Unlock()
		select {
		case p.policyChanged <- struct{}{}:
		default:
		}
	case *wire.ToSchedd_Grant:
		p.mu.Lock()
		if p.policy != nil && len(p.grants) < maxPendingGrants {
			p.grants = append(p.grants, m)
		}
		p.mu.Unlock()
	}
}

// maxPendingGrants bounds the grants that wait to be taken in. Each is soon answered, and
// taken in before the answer is sent.
const maxPendingGrants = 65536

// sendWithProposals proposes places for those of the messages that ask for any, and sends
// all in their order.
func (p *selfPlacer) sendWithProposals(all []*wire.FromSchedd, send func(*wire.FromSchedd) error) error {
	p.addProposals(time.Now(), all)
	for _, m := range all {
		if err := rpc.CheckDeliverable(m); err != nil {
			p.log.Warn("a message to the negotiator cannot be sent", "error", err)
			continue
		}
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}

// addProposals writes proposals into messages that nobody else has yet.
func (p *selfPlacer) addProposals(now time.Time, all []*wire.FromSchedd) {
	p.proposeMu.Lock()
	defer p.proposeMu.Unlock()
	if !p.updateCopy(now) {
		return
	}
	var updates []selfplace.RequestUpdate
	var of []*wire.RequestUpdate
	for _, m := range all {
		switch m := m.GetOf().(type) {
		case *wire.FromSchedd_Request:
			if m.Request.GetNow() { // the leader places it before all others
				continue
			}
			updates, of = append(updates, requestUpdate(m.Request)), append(of, m.Request)
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
			of[i].Proposals = append(of[i].Proposals,
				&wire.Proposal{Node: one.Machine, Units: uint32(one.Units), Waiting: one.Waiting})
		}
	}
}

// updateCopy brings the copy up to date with what was heard, and reports whether there is
// one.
func (p *selfPlacer) updateCopy(now time.Time) bool {
	p.mu.Lock()
	policy, machines, synced, reported, lost := p.policy, p.machines, p.synced, p.grants, p.watchLost
	p.machines, p.grants, p.watchLost = map[string]machineUpdate{}, nil, false
	p.mu.Unlock()
	if lost || policy == nil {
		p.copy = nil
	}
	if policy == nil {
		return false
	}
	if p.copy == nil {
		p.copy = selfplace.New(p.schedd)
	}
	p.copy.SetPolicy(int(policy.GetPart()), int(policy.GetParts()))
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		c := machines[name]
		p.copy.SetMachine(name, c.started, c.sequence, c.ad)
	}
	if synced {
		p.copy.SetSynced()
	}
	for _, m := range reported {
		g := m.GetGrant()
		p.copy.Granted(now, selfplace.LeaderGrant{ID: g.GetId(), Request: g.GetRequest(), Machine: g.GetNode(),
			Resources: g.GetResources().Vector(), Waiting: g.GetWaiting()})
	}
	return true
}

// requestUpdate is what the leader is told of a request, in the copy's words.
func requestUpdate(m *wire.RequestUpdate) selfplace.RequestUpdate {
	band := roost.BatchBand
	if b, err := roost.ParsePriorityBand(m.GetBand()); err == nil {
		band = b
	}
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	return selfplace.RequestUpdate{
		ID: m.GetId(), Owner: m.GetOwner(), Group: m.GetGroup(), Band: band, Priority: m.GetPriority(),
		Oldest: m.GetOldest(),
		Wanted: int(m.GetWanted()), NoWait: int(m.GetNoWait()), Resources: m.GetResources().Vector(), Ad: m.GetAd(),
		Gang:        int(m.GetGang()),
		Reservation: m.GetReservation(), Walltime: seconds(m.GetWalltimeS()), Predicted: seconds(m.GetPredictedS()),
		Removed: m.GetWanted() == 0 && m.GetClaims() == 0,
	}
}
