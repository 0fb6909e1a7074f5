package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// unitTable lists the resource units of the nodes, one a line.
func unitTable(nodes []document.Node) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "NODE"}, {Head: "UNIT"}, {Head: "CPUS FREE", RightAligned: true},
		{Head: "STREAM", RightAligned: true, DropPriority: 2}, {Head: "MEMORY FREE", RightAligned: true},
		{Head: "GPU MEMORY FREE", RightAligned: true}, {Head: "RUNNING", RightAligned: true},
		{Head: "WAITING", RightAligned: true}, {Head: "ROOM", RightAligned: true},
		{Head: "WAIT", RightAligned: true, DropPriority: 1},
	}}
	for _, n := range nodes {
		for _, u := range n.Units {
			if u.Cpus.Total == 0 && u.Memory.Total == 0 {
				t.AddRow(frame.TableCell{Text: n.Name}, frame.TableCell{Text: u.Name}, frame.TableCell{},
					frame.TableCell{}, frame.TableCell{},
					frame.TableCell{Text: unitGPUText(&u)}, frame.TableCell{}, frame.TableCell{}, frame.TableCell{},
					frame.TableCell{})
				continue
			}
			running := fmt.Sprint(u.Running)
			if u.RunLimit > 0 {
				running += fmt.Sprintf("/%d", u.RunLimit)
			}
			wait := ""
			if u.Waiting+u.Room > 0 {
				wait = document.SpanText(time.Duration(u.Wait * float64(time.Second)))
			}
			t.AddRow(frame.TableCell{Text: n.Name}, frame.TableCell{Text: u.Name},
				frame.TableCell{Text: fmt.Sprintf("%g/%g", u.Cpus.Free, u.Cpus.Total)},
				frame.TableCell{Text: fmt.Sprintf("%g", u.Stream)},
				frame.TableCell{Text: memoryText(u.Memory)}, frame.TableCell{Text: unitGPUText(&u)},
				frame.TableCell{Text: running},
				frame.TableCell{Text: fmt.Sprint(u.Waiting)}, frame.TableCell{Text: fmt.Sprint(u.Room)},
				frame.TableCell{Text: wait})
		}
	}
	t.DropEmptyColumns("GPU MEMORY FREE", "WAIT")
	return t
}

// unitGPUText is what is free of the unit's GPUs.
func unitGPUText(u *document.ResourceUnit) string {
	if len(u.GPUs) == 0 {
		return ""
	}
	var sum document.ResourceAmount
	for _, g := range u.GPUs {
		sum.Free, sum.Total = sum.Free+g.Memory.Free, sum.Total+g.Memory.Total
	}
	return memoryText(sum)
}
