package gpu

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// SavedPlacement is a placement by names. Names remain valid after a restart that
// renumbers units and devices.
type SavedPlacement struct {
	Class  AppClass `json:",omitempty"`
	Disk   roost.Bytes
	IO     roost.IORates `json:",omitzero"`
	Parts  []SavedPart   `json:",omitempty"`
	Shares []SavedShare  `json:",omitempty"`

	Reclaimed bool `json:",omitempty"`
}

// SavedPart is a UnitPart with the name of its unit.
type SavedPart struct {
	Unit   string
	CPU    roost.MilliCPU
	Memory roost.Bytes
}

// SavedShare is a DeviceShare with the UUID of its device.
type SavedShare struct {
	UUID   string
	Memory roost.Bytes
	Whole  bool `json:",omitempty"`
}

// Save returns a placement by names.
func (f *FreeResources) Save(p Placement) SavedPlacement {
	s := SavedPlacement{Class: p.Class, Disk: p.Disk, IO: p.IO, Reclaimed: p.Reclaimed}
	for _, part := range p.Parts {
		s.Parts = append(s.Parts, SavedPart{f.units[part.Unit].Name, part.CPU, part.Memory})
	}
	for _, share := range p.Shares {
		s.Shares = append(s.Shares, SavedShare{f.devices[share.Device].UUID, share.Memory, share.Whole})
	}
	return s
}

// Restore returns the placement of a SavedPlacement, and takes nothing. The error, of
// kind roost.NotFound, names what the machine no longer has.
func (f *FreeResources) Restore(s SavedPlacement) (Placement, error) {
	p := Placement{Class: s.Class, Disk: s.Disk, IO: s.IO, Reclaimed: s.Reclaimed}
	for _, part := range s.Parts {
		u := slices.IndexFunc(f.units, func(u unitState) bool { return u.Name == part.Unit })
		if u < 0 {
			return Placement{}, fmt.Errorf("resource unit %q: %w on this machine", part.Unit, roost.NotFound)
		}
		p.Parts = append(p.Parts, UnitPart{Unit: u, CPU: part.CPU, Memory: part.Memory})
	}
	for _, share := range s.Shares {
		d := slices.IndexFunc(f.devices, func(d DeviceState) bool { return d.UUID == share.UUID })
		if d < 0 {
			return Placement{}, fmt.Errorf("GPU %s: %w on this machine", share.UUID, roost.NotFound)
		}
		p.Shares = append(p.Shares, DeviceShare{d, share.Memory, share.Whole})
	}
	return p, nil
}
