package pool

import (
	"cmp"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
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

// DevicesOf reads a machine's GPUs, in their order.
func DevicesOf(ad *classad.Ad) []GPUDevice {
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

// gpuTable lists the GPUs of the nodes, one a line.
func gpuTable(nodes []NodeRecord) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "NODE"}, {Head: "GPU", RightAligned: true}, {Head: "MODEL", MinWidth: 10}, {Head: "MIG"},
		{Head: "MEMORY USED", RightAligned: true}, {Head: "BUSY", RightAligned: true},
		{Head: "TEMP", RightAligned: true, DropPriority: 2}, {Head: "POWER", RightAligned: true, DropPriority: 3},
		{Head: "HEALTH", MinWidth: 12}, {Head: "UUID", DropPriority: 1},
	}}
	text := func(format string, f *float64, unit float64) string {
		if f == nil {
			return "-"
		}
		return fmt.Sprintf(format, *f*unit)
	}
	for _, n := range nodes {
		for _, d := range n.Devices {
			memory := memoryText(ResourceAmount{0, d.Memory})[2:]
			if d.Used != nil {
				memory = memoryText(ResourceAmount{*d.Used, d.Memory})
			}
			health := frame.TableCell{Text: cmp.Or(d.Reason, "ok"), Colour: frame.Green}
			if !d.Healthy {
				health = frame.TableCell{Text: cmp.Or(d.Reason, "sick"), Colour: frame.Red}
			}
			t.AddRow(frame.TableCell{Text: n.Name}, frame.TableCell{Text: fmt.Sprint(d.Index)},
				frame.TableCell{Text: d.Model},
				frame.TableCell{Text: d.MIG}, frame.TableCell{Text: memory},
				frame.TableCell{Text: text("%.0f%%", d.Busy, 100)},
				frame.TableCell{Text: text("%.0f°C", d.Temperature, 1)},
				frame.TableCell{Text: text("%.0fW", d.Power, 1)}, health,
				frame.TableCell{Text: d.UUID, Colour: frame.Dim})
		}
	}
	t.DropEmptyColumns("MIG", "BUSY", "TEMP", "POWER")
	return t
}
