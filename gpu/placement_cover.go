package gpu

import "github.com/roost-batch/roost"

// CoverPlacement divides a placement for which claims with held must leave. now is the
// part that must come from free resources at once, later the rest, which becomes free
// when the claims have left. The caller allocates now while the claims exist, and p in
// its place when they have left. CPU of a claim makes room only in its own class, as
// FreeResources counts it. Claims in reclaimed resources make no room of CPU and memory.
func CoverPlacement(p Placement, held []Placement) (now, later Placement) {
	now.Class, later.Class = p.Class, p.Class
	var disk roost.Bytes
	var io roost.IORates
	for i := range held {
		disk += held[i].Disk
		io = io.Add(held[i].IO)
	}
	now.Disk = max(p.Disk-disk, 0)
	later.Disk = p.Disk - now.Disk
	now.IO = p.IO.Sub(io).Max(roost.IORates{})
	later.IO = p.IO.Sub(now.IO)
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
