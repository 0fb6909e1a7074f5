package document

import "github.com/roost-batch/roost/internal/wire/scheddapi"

// Placement is a placement for programs.
type Placement struct {
	Units []string    `json:"units"`
	Cores []uint32    `json:"cores,omitempty"`
	GPUs  []PlacedGPU `json:"gpus,omitempty"`
}

// PlacedGPU is a GPU, or a part of its memory, of a placement.
type PlacedGPU struct {
	UUID   string `json:"uuid"`
	Index  uint32 `json:"index"`
	Model  string `json:"model,omitempty"`
	Memory int64  `json:"memory_bytes"`
	Whole  bool   `json:"whole"`
}

// PlacementOf returns the document of a placement; nil for none.
func PlacementOf(p *scheddapi.Placed) *Placement {
	if p == nil {
		return nil
	}
	r := &Placement{Units: p.GetUnits(), Cores: p.GetCores()}
	for _, g := range p.GetGpus() {
		r.GPUs = append(r.GPUs, PlacedGPU{g.GetUuid(), g.GetIndex(), g.GetModel(), g.GetMemory(), g.GetWhole()})
	}
	return r
}
