package negotiation

import (
	"log/slog"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// SelfPlacer places the batch requests of a schedd without the streams around it. The
// simulator calls it, so that what it simulates is what runs. Where the leader does not
// want schedds to place, it proposes nothing.
type SelfPlacer struct{ placer *selfPlacer }

// NewSelfPlacer returns that of the schedd of that name.
func NewSelfPlacer(schedd string) *SelfPlacer {
	return &SelfPlacer{newSelfPlacer(schedd, slog.New(slog.DiscardHandler))}
}

// LeaderMessage takes in a message of the leader.
func (p *SelfPlacer) LeaderMessage(m *wire.ToSchedd) { p.placer.onLeaderMessage(m) }

// MachineUpdated takes in a machine's ad, which belongs to it from then on; nil: the
// machine is gone.
func (p *SelfPlacer) MachineUpdated(name string, started int64, sequence uint64, ad *classad.Ad) {
	p.placer.mu.Lock()
	defer p.placer.mu.Unlock()
	p.placer.machines[name] = machineUpdate{started, sequence, ad}
}

// Synced takes in that all machines are known.
func (p *SelfPlacer) Synced() {
	p.placer.mu.Lock()
	defer p.placer.mu.Unlock()
	p.placer.synced = true
}

// Propose writes into what is about to be sent to the leader where the units of requests
// should go.
func (p *SelfPlacer) Propose(now time.Time, all []*wire.FromSchedd) { p.placer.addProposals(now, all) }
