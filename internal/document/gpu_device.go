package document

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// GPUDevice is what the ad of a machine says of one of its GPUs. What is not known is
// absent.
type GPUDevice struct {
	Index       int64    `json:"index"`
	UUID        string   `json:"uuid"`
	Model       string   `json:"model"`
	MIG         string   `json:"mig,omitempty"`
	Memory      float64  `json:"memory_bytes"`
	Used        *float64 `json:"used_bytes,omitempty"`
	Busy        *float64 `json:"busy,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Power       *float64 `json:"power_watts,omitempty"`
	Healthy     bool     `json:"healthy"`
	Reason      string   `json:"why,omitempty"`
}

// AttrDevices is the list that a startd writes of its GPUs.
const AttrDevices = "GpuDevices"

// GPUDevicesOf reads a machine's GPUs, in their order.
func GPUDevicesOf(ad *classad.Ad) []GPUDevice {
	list, _ := ad.Eval(AttrDevices, nil).Elements(nil)
	var all []GPUDevice
	for _, v := range list {
		a, ok := v.Ad()
		if !ok {
			continue
		}
		known := func(name string, unit float64) *float64 {
			if f, ok := a.Real(name); ok {
				f *= unit
				return &f
			}
			return nil
		}
		var d GPUDevice
		d.Index, _ = a.Int("Index")
		d.UUID, _ = a.Str("UUID")
		d.Model, _ = a.Str("Model")
		d.MIG, _ = a.Str("MIG")
		d.Healthy, _ = a.Bool("Healthy")
		d.Reason, _ = a.Str("Why")
		memory, _ := a.Real("Memory")
		d.Memory = memory * float64(roost.MiB)
		d.Used, d.Busy = known("MemoryUsed", float64(roost.MiB)), known("Busy", 1)
		d.Temperature, d.Power = known("Temperature", 1), known("Power", 1)
		all = append(all, d)
	}
	return all
}
