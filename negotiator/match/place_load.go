package match

import "github.com/roost-batch/roost"

// What a site may add to the score: the load of the machines, and that production and
// other tasks share machines.

// siteScorer is a cycle as far as it scores machines by the policies of a site.
type siteScorer struct{ *negotiationCycle }

func (p *negotiationCycle) siteScores() siteScorer { return siteScorer{p} }

// loadScore returns the score of [LeastLoaded]: which part of the machine's cores would
// be busy with the unit. A new task shows in the load average only minutes later, so what
// was granted since the ad counts in full. A machine whose ad names no load counts as
// busy as its claims could make it.
func (p siteScorer) loadScore(c *RequestClass, at int) float64 {
	m, total := p.Machines[at], p.machineTotals[at]
	granted := max(m.Free.CPU-p.free[at].CPU, 0) + max(m.streamFree-p.streamFree[at], 0)
	busy := (granted + c.Resources.CPU).Cores() + float64(m.load)
	if m.load < 0 {
		busy = (total.CPU - p.free[at].CPU + c.Resources.CPU).Cores()
	}
	return busy / max(total.CPU.Cores(), 0.001)
}

// bandMix counts what production got in this cycle, by machine. It exists only where the
// cell mixes bands.
type bandMix map[int]roost.MilliCPU

// mixScore returns what is added to a score where the cell mixes bands (Borg §3.2). It is
// the part of the machine's cores that production has there. Production avoids such
// machines and other bands prefer them. So its peaks find cores that batch can yield.
func (p siteScorer) mixScore(w *requestState, at int) float64 {
	if p.bandMix == nil {
		return 0
	}
	part := (p.Machines[at].prodCPU + p.bandMix[at]).Cores() / max(p.machineTotals[at].CPU.Cores(), 0.001)
	if w.Band.IsProd() {
		return part
	}
	return -part
}

// countMix counts units of a request that were placed on a machine.
func (p siteScorer) countMix(w *requestState, at, n int) {
	if p.bandMix != nil && w.Band.IsProd() {
		p.bandMix[at] += w.Class.Resources.CPU * roost.MilliCPU(n)
	}
}

// countPendingMix counts the grants of production that the machines' ads do not show yet.
func (p siteScorer) countPendingMix() {
	p.bandMix = nil
	if !p.MixBands {
		return
	}
	p.bandMix = bandMix{}
	for _, at := range p.withPendingGrants {
		for _, one := range p.Pending[p.Machines[at].Name] {
			if !one.MayReclaim {
				p.bandMix[int(at)] += one.Resources.CPU
			}
		}
	}
}
