package pool

import (
	"cmp"
	"fmt"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// gpuTable lists the GPUs of the nodes, one a line.
func gpuTable(nodes []document.Node) *frame.TextTable {
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
			memory := memoryText(document.ResourceAmount{Total: d.Memory})[2:]
			if d.Used != nil {
				memory = memoryText(document.ResourceAmount{Free: *d.Used, Total: d.Memory})
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
