package gpu

import "github.com/roost-batch/roost"

// CoverPlacement parts a placement that others have to make room for, with what they
// hold, into what has to come from what is free now, and what comes when they have gone.
// Both are taken like placements: the first while they are there, and the whole in its
// place once they are not. Processor time is made room for by those of the same class
// only, as Free counts it, and neither it nor memory by those who have nothing of their
// own of them.
func CoverPlacement(p Placement, held []Placement) (now, later Placement) {
	now.Class, later.Class = p.Class, p.Class
	var disk roost.Bytes
	for i := range held {
		disk += held[i].Disk
	}
	now.Disk = max(p.Disk-disk, 0)
	later.Disk = p.Disk - now.Disk
	for _, part := range p.Parts {
		n := part
		for i := range held {
			for _, h := range held[i].Parts {
				if h.Unit != part.Unit || held[i].Reclaimed {
					continue
				}
				if held[i].Class == p.Class {
					n.CPU -= h.CPU
				}
				n.Memory -= h.Memory
			}
		}
		n.CPU, n.Memory = max(n.CPU, 0), max(n.Memory, 0)
		now.Parts = append(now.Parts, n)
		later.Parts = append(later.Parts,
			UnitPart{Unit: part.Unit, CPU: part.CPU - n.CPU, Memory: part.Memory - n.Memory})
	}
	for _, share := range p.Shares {
		n, shared := share, false
		for i := range held {
			for _, h := range held[i].Shares {
				if h.Device == share.Device {
					n.Memory -= h.Memory
					shared = true
				}
			}
		}
		if !shared {
			now.Shares = append(now.Shares, share)
			continue
		}
		if n.Whole = false; n.Memory > 0 {
			now.Shares = append(now.Shares, n)
			share.Memory -= n.Memory
		}
		later.Shares = append(later.Shares, share)
	}
	return now, later
}
