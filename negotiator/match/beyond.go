package match

import "github.com/roost-batch/roost"

// A soft limit (PBS: max_run_soft) may be gone beyond, by what nobody else in its band wants: in a band those first take turns that stay within theirs, and
// then all. What runs beyond one may have to go again: a unit of the same band that stays within all of its own displaces it, as it would a lower band. Naively a
// submitter beyond a limit would just come last; but then what he has got in a quiet hour he keeps as long as his tasks run, whoever comes.
//
// Whoever makes the snapshot says which claims are beyond: the youngest ones, as many as are too many.

// ClaimKey names a claim in the pool.
type ClaimKey struct {
	Machine string
	ID      uint64
}

// placeBeyond lets those of a band take turns that soft limits have kept back.
func (p *plan) placeBeyond(wants []*want) {
	if !p.curbed {
		return
	}
	p.curbed, p.beyond = false, true
	p.placeBand(wants)
	p.beyond = false
}

// surplus reports whether a claim of the want's own band has to make room as it is beyond a soft limit. What is not run again nobody loses for that.
func (p *plan) surplus(m *Machine, c *Claim) bool {
	return !p.beyond && !c.ruined() && c.Since != 0 && p.Preemption.Beyond[ClaimKey{m.Name, c.ID}] != ""
}

// equals reports whether claims of batch may have to make room for others of batch, on a machine or on any (nil).
func (p *plan) equals(m *Machine) bool {
	if p.Preemption.Fair != nil || len(p.Preemption.Beyond) > 0 {
		return true
	}
	if m == nil {
		return len(p.choosers) > 0
	}
	return m.choosy
}

// topOf is the highest band that one may displace.
func (p *plan) topOf(band roost.Band) roost.Band {
	if band.Prod() || p.equals(nil) {
		return roost.Batch
	}
	return roost.Free
}
