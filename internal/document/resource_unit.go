package document

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// ResourceUnit is what the ad of a machine says of one of its resource units.
type ResourceUnit struct {
	Name     string         `json:"name"`
	Cpus     ResourceAmount `json:"cpus"`
	Stream   float64        `json:"stream_cpus_free"`
	Memory   ResourceAmount `json:"memory_bytes"`
	GPUs     []UnitShare    `json:"gpus,omitempty"`
	Running  int            `json:"running"`
	RunLimit int            `json:"run_limit,omitempty"`
	Waiting  int            `json:"waiting"`
	Room     int            `json:"room"`
	Wait     float64        `json:"predicted_wait_seconds"`
}

// UnitShare is what is handed out of a GPU.
type UnitShare struct {
	UUID   string         `json:"uuid"`
	Memory ResourceAmount `json:"memory_bytes"`
	Tasks  int            `json:"tasks"`
}

// resourceUnitsOf reads a machine's resource units. Of an ad that makes no sense there
// are none.
func resourceUnitsOf(ad *classad.Ad) []ResourceUnit {
	if _, ok := ad.Lookup(roost.AttrUnits); !ok {
		return nil
	}
	f, err := gpu.ReadAd(ad)
	if err != nil {
		return nil
	}
	var all []ResourceUnit
	for i := range f.Len() {
		u, batch, q := f.Unit(i), f.UnitFree(i, gpu.BatchClass), f.Queue(i)
		n := ResourceUnit{
			Name: u.Name, Cpus: ResourceAmount{batch.CPU.Cores(), u.CPU.Cores()},
			Stream: f.UnitFree(i, gpu.StreamClass).CPU.Cores(),
			Memory: ResourceAmount{float64(batch.Memory), float64(u.Memory)}, Running: q.Running, RunLimit: q.RunLimit,
			Waiting: q.Length, Room: q.FreePlaces, Wait: q.WaitSeconds,
		}
		for _, d := range f.Devices() {
			if d.Unit == i {
				n.GPUs = append(n.GPUs, UnitShare{d.UUID, ResourceAmount{float64(d.Free), float64(d.Memory)}, d.Tasks})
			}
		}
		all = append(all, n)
	}
	return all
}
