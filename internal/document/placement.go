package document

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Placement is a placement for programs.
type Placement struct {
	Units []string    `json:"units"`
	Cores []uint32    `json:"cores,omitempty"`
	GPUs  []PlacedGPU `json:"gpus,omitempty"`
	Ports []GivenPort `json:"ports,omitempty"`
}

// GivenPort is a port of a placement.
type GivenPort struct {
	Name    string `json:"name"`
	Number  uint32 `json:"number"`
	Address string `json:"address"`        // where clients reach it, with the number
	Host    string `json:"host,omitempty"` // as in the job
	Listen  bool   `json:"listen,omitempty"`
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
	for _, port := range p.GetPorts() {
		r.Ports = append(r.Ports, GivenPort{port.GetName(), port.GetNumber(), PortAddressText(port), port.GetHost(),
			port.GetListen()})
	}
	return r
}

// PortAddressText writes where clients reach a port: "n1.example.org:20001".
func PortAddressText(p *scheddapi.PortGiven) string {
	host := p.GetAddress()
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return host + ":" + strconv.FormatUint(uint64(p.GetNumber()), 10)
}
