package schedd

import (
	"log/slog"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// Placing is how a schedd places its batch requests itself, without the streams around it, as one turns it by hand. The simulator does, so that what it
// plays is what runs. Where the leader does not want schedds to place, it proposes nothing.
type Placing struct{ placer *placer }

// NewPlacing returns that of the schedd of that name.
func NewPlacing(schedd string) *Placing {
	return &Placing{newPlacer(schedd, slog.New(slog.DiscardHandler))}
}

// Hear takes in a message of the leader.
func (p *Placing) Hear(m *wire.ToSchedd) { p.placer.hear(m) }

// Machine takes in a machine's ad, which belongs to it from then on; nil: the machine is gone.
func (p *Placing) Machine(name string, started int64, sequence uint64, ad *classad.Ad) {
	p.placer.mu.Lock()
	defer p.placer.mu.Unlock()
	p.placer.machines[name] = machineNews{started, sequence, ad}
}

// Synced takes in that all machines are known.
func (p *Placing) Synced() {
	p.placer.mu.Lock()
	defer p.placer.mu.Unlock()
	p.placer.synced = true
}

// Propose writes into what is about to be sent to the leader where the units of requests should go.
func (p *Placing) Propose(now time.Time, all []*wire.FromSchedd) { p.placer.propose(now, all) }
