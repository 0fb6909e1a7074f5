package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/cli/frame"
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

// unitTable lists the resource units of the nodes, one a line.
func unitTable(nodes []NodeRecord) *frame.TextTable {
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
					frame.TableCell{Text: u.gpusText()}, frame.TableCell{}, frame.TableCell{}, frame.TableCell{},
					frame.TableCell{})
				continue
			}
			running := fmt.Sprint(u.Running)
			if u.RunLimit > 0 {
				running += fmt.Sprintf("/%d", u.RunLimit)
			}
			wait := ""
			if u.Waiting+u.Room > 0 {
				wait = frame.SpanText(time.Duration(u.Wait * float64(time.Second)))
			}
			t.AddRow(frame.TableCell{Text: n.Name}, frame.TableCell{Text: u.Name},
				frame.TableCell{Text: fmt.Sprintf("%g/%g", u.Cpus.Free, u.Cpus.Total)},
				frame.TableCell{Text: fmt.Sprintf("%g", u.Stream)},
				frame.TableCell{Text: memoryText(u.Memory)}, frame.TableCell{Text: u.gpusText()},
				frame.TableCell{Text: running},
				frame.TableCell{Text: fmt.Sprint(u.Waiting)}, frame.TableCell{Text: fmt.Sprint(u.Room)},
				frame.TableCell{Text: wait})
		}
	}
	t.DropEmptyColumns("GPU MEMORY FREE", "WAIT")
	return t
}

// gpusText is what is free of the unit's GPUs.
func (u *ResourceUnit) gpusText() string {
	if len(u.GPUs) == 0 {
		return ""
	}
	var sum ResourceAmount
	for _, g := range u.GPUs {
		sum.Free, sum.Total = sum.Free+g.Memory.Free, sum.Total+g.Memory.Total
	}
	return memoryText(sum)
}
