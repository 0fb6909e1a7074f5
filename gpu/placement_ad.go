package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Describe writes a placement into the ad of a claim. Units and devices have their
// numbers of the machine's ad (FreeResources.Describe).
func (p *Placement) Describe(ad *classad.Ad) {
	parts := make([]classad.Value, 0, len(p.Parts))
	for _, part := range p.Parts {
		parts = append(parts, classad.ListValue(classad.IntValue(int64(part.Unit)),
			numberInUnits(int64(part.CPU), 1000), numberInUnits(int64(part.Memory), int64(roost.MiB))))
	}
	if len(parts) > 0 {
		ad.SetValue(roost.AttrParts, classad.ListValue(parts...))
	}
	shares := make([]classad.Value, 0, len(p.Shares))
	for _, s := range p.Shares {
		shares = append(shares, classad.ListValue(classad.IntValue(int64(s.Device)),
			numberInUnits(int64(s.Memory), int64(roost.MiB)), classad.BoolValue(s.Whole)))
	}
	if len(shares) > 0 {
		ad.SetValue(roost.AttrShares, classad.ListValue(shares...))
	}
	p.describeUsageEstimate(ad)
}

// numberInUnits returns n in units, an integer if it is whole.
func numberInUnits(n, unit int64) classad.Value {
	if n%unit == 0 {
		return classad.IntValue(n / unit)
	}
	return classad.RealValue(float64(n) / float64(unit))
}

// ReadPlacement reads what Describe wrote. The class and the disk come from other
// attributes. The error, of kind roost.Invalid, says what is wrong. The units and amounts
// are not checked against the machine: see CanReturnAll.
func ReadPlacement(ad *classad.Ad, class AppClass, disk roost.Bytes) (Placement, error) {
	p := Placement{Class: class, Disk: disk}
	err := eachTriple(ad, roost.AttrParts, func(row []classad.Value) bool {
		unit, ok := row[0].Int()
		cpu, okCPU := roundedUnits(row[1], 1000)
		memory, okMemory := roundedUnits(row[2], int64(roost.MiB))
		p.Parts = append(p.Parts, UnitPart{Unit: int(unit), CPU: roost.MilliCPU(cpu), Memory: roost.Bytes(memory)})
		return ok && unit >= 0 && unit < maxUnits && okCPU && okMemory
	})
	if err != nil {
		return p, err
	}
	err = eachTriple(ad, roost.AttrShares, func(row []classad.Value) bool {
		device, ok := row[0].Int()
		memory, okMemory := roundedUnits(row[1], int64(roost.MiB))
		whole, okWhole := row[2].Bool()
		p.Shares = append(p.Shares, DeviceShare{int(device), roost.Bytes(memory), whole})
		return ok && device >= 0 && device < maxUnits && okMemory && okWhole
	})
	p.readUsageEstimate(ad)
	return p, err
}

// eachTriple calls f with each list of three in a list. A missing attribute is an empty
// list.
func eachTriple(ad *classad.Ad, name string, f func([]classad.Value) bool) error {
	if _, ok := ad.Lookup(name); !ok {
		return nil
	}
	rows, ok := ad.Eval(name, nil).Elements(nil)
	if !ok || len(rows) > maxUnits {
		return fmt.Errorf("%s: %w: it is no list of what is taken", name, roost.Invalid)
	}
	for i, v := range rows {
		if row, ok := v.Elements(nil); !ok || len(row) != 3 || !f(row) {
			return fmt.Errorf("%s: place %d: %w: %v is no amount of something", name, i, roost.Invalid, v)
		}
	}
	return nil
}

// roundedUnits returns a number in units, rounded to the nearest integer.
func roundedUnits(v classad.Value, unit int64) (int64, bool) {
	f, ok := v.Number()
	if f *= float64(unit); !ok || !(f >= 0 && f < 1<<53) {
		return 0, false
	}
	return int64(f + 0.5), true
}

// CanReturnAll reports whether all these placements together can be part of what is
// allocated of f. Only then may they be returned.
func (f *FreeResources) CanReturnAll(all []Placement) bool {
	g := f.Clone()
	for i := range all {
		p := &all[i]
		if g.disk += p.Disk; p.Disk < 0 || g.disk > g.diskSize {
			return false
		}
		if g.io = g.io.Add(p.IO); p.IO.IsNegative() || !g.io.FitsIn(g.ioTotal) {
			return false
		}
		for _, part := range p.Parts {
			if part.Unit < 0 || part.Unit >= len(g.units) || part.CPU < 0 || part.Memory < 0 {
				return false
			}
			u := &g.units[part.Unit]
			if p.Reclaimed {
				continue
			}
			u.cpu[p.Class], u.memory = u.cpu[p.Class]+part.CPU, u.memory+part.Memory
			if u.cpu[p.Class] > u.CPU || u.memory > u.Memory {
				return false
			}
		}
		for _, s := range p.Shares {
			if s.Device < 0 || s.Device >= len(g.devices) || s.Memory < 0 {
				return false
			}
			d := &g.devices[s.Device]
			d.Free, d.Tasks = d.Free+s.Memory, d.Tasks-1
			if d.Free > d.Memory || d.Tasks < 0 {
				return false
			}
		}
	}
	return true
}
