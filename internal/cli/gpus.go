package cli

import (
	"cmp"
	"fmt"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// device is what the ad of a machine says of one of its GPUs. What is not known is absent.
type device struct {
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
	Why         string   `json:"why,omitempty"`
}

// attrDevices is the list that a startd writes of its GPUs.
const attrDevices = "GpuDevices"

// devicesOf reads a machine's GPUs, in their order.
func devicesOf(ad *classad.Ad) []device {
	list, _ := ad.Eval(attrDevices, nil).Elements(nil)
	var all []device
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
		var d device
		d.Index, _ = a.Int("Index")
		d.UUID, _ = a.Str("UUID")
		d.Model, _ = a.Str("Model")
		d.MIG, _ = a.Str("MIG")
		d.Healthy, _ = a.Bool("Healthy")
		d.Why, _ = a.Str("Why")
		memory, _ := a.Real("Memory")
		d.Memory = memory * float64(roost.MiB)
		d.Used, d.Busy = known("MemoryUsed", float64(roost.MiB)), known("Busy", 1)
		d.Temperature, d.Power = known("Temperature", 1), known("Power", 1)
		all = append(all, d)
	}
	return all
}

// gpuTable lists the GPUs of the nodes, one a line.
func gpuTable(nodes []node) *table {
	t := &table{columns: []column{
		{head: "NODE"}, {head: "GPU", right: true}, {head: "MODEL", least: 10}, {head: "MIG"}, {head: "MEMORY USED", right: true}, {head: "BUSY", right: true},
		{head: "TEMP", right: true, spare: 2}, {head: "POWER", right: true, spare: 3}, {head: "HEALTH", least: 12}, {head: "UUID", spare: 1},
	}}
	text := func(format string, f *float64, unit float64) string {
		if f == nil {
			return "-"
		}
		return fmt.Sprintf(format, *f*unit)
	}
	for _, n := range nodes {
		for _, d := range n.Devices {
			memory := sizes(amount{0, d.Memory})[2:]
			if d.Used != nil {
				memory = sizes(amount{*d.Used, d.Memory})
			}
			health := cell{cmp.Or(d.Why, "ok"), green}
			if !d.Healthy {
				health = cell{cmp.Or(d.Why, "sick"), red}
			}
			t.add(cell{n.Name, ""}, cell{fmt.Sprint(d.Index), ""}, cell{d.Model, ""}, cell{d.MIG, ""}, cell{memory, ""}, cell{text("%.0f%%", d.Busy, 100), ""},
				cell{text("%.0f°C", d.Temperature, 1), ""}, cell{text("%.0fW", d.Power, 1), ""}, health, cell{d.UUID, dim})
		}
	}
	t.drop("MIG", "BUSY", "TEMP", "POWER")
	return t
}

// examineGPUs looks for sick GPUs of the pool, and for some of this machine's of which the pool knows nothing.
func (c *call) examineGPUs() []finding {
	texts, err := c.ads(&wire.AdQuery{Type: "Machine", Projection: []string{roost.AttrName, attrDevices}})
	if err != nil {
		return nil // said of the nodes
	}
	var sick []finding
	devices, nodes := 0, 0
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			continue
		}
		name, _ := ad.Str(roost.AttrName)
		all := devicesOf(ad)
		devices += len(all)
		if len(all) > 0 {
			nodes++
		}
		for _, d := range all {
			if !d.Healthy {
				sick = append(sick, finding{"gpus", warn, fmt.Sprintf("GPU %d of %s (%s, %s) gets no tasks: %s", d.Index, name, d.Model, d.UUID, d.Why),
					"look at the kernel's log there; after the repair start the startd anew"})
			}
		}
	}
	if devices == 0 {
		return unseenGPUs("/dev/nvidiactl")
	}
	if sick == nil {
		return []finding{{"gpus", fine, fmt.Sprintf("%s of %s, all well", plural(devices, "GPU"), plural(nodes, "node")), ""}}
	}
	return sick
}

// unseenGPUs warns of a driver on this machine whose cards no startd has found.
func unseenGPUs(file string) []finding {
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	return []finding{{"gpus", warn, "the NVIDIA driver is loaded here, and no startd of the pool has found a GPU",
		"startd.log in the pool's log directory says why: install libnvidia-ml.so.1, or build roost where there is a C compiler"}}
}
