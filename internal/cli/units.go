package cli

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// unit is what the ad of a machine says of one of its resource units.
type unit struct {
	Name     string      `json:"name"`
	Cpus     amount      `json:"cpus"`
	Stream   float64     `json:"stream_cpus_free"`
	Memory   amount      `json:"memory_bytes"`
	GPUs     []unitShare `json:"gpus,omitempty"`
	Running  int         `json:"running"`
	RunLimit int         `json:"run_limit,omitempty"`
	Waiting  int         `json:"waiting"`
	Room     int         `json:"room"`
	Wait     float64     `json:"predicted_wait_seconds"`
}

// unitShare is what is handed out of a GPU.
type unitShare struct {
	UUID   string `json:"uuid"`
	Memory amount `json:"memory_bytes"`
	Tasks  int    `json:"tasks"`
}

// unitsOf reads a machine's resource units. Of an ad that makes no sense there are none.
func unitsOf(ad *classad.Ad) []unit {
	if _, ok := ad.Lookup(roost.AttrUnits); !ok {
		return nil
	}
	f, err := gpu.Read(ad)
	if err != nil {
		return nil
	}
	var all []unit
	for i := range f.Len() {
		u, batch, q := f.Unit(i), f.UnitFree(i, gpu.Batch), f.Queue(i)
		n := unit{
			Name: u.Name, Cpus: amount{batch.CPU.Cores(), u.CPU.Cores()}, Stream: f.UnitFree(i, gpu.Stream).CPU.Cores(),
			Memory: amount{float64(batch.Memory), float64(u.Memory)}, Running: q.Running, RunLimit: q.RunLimit, Waiting: q.Length, Room: q.Room, Wait: q.Wait,
		}
		for _, d := range f.Devices() {
			if d.Unit == i {
				n.GPUs = append(n.GPUs, unitShare{d.UUID, amount{float64(d.Free), float64(d.Memory)}, d.Tasks})
			}
		}
		all = append(all, n)
	}
	return all
}

// unitTable lists the resource units of the nodes, one a line.
func unitTable(nodes []node) *table {
	t := &table{columns: []column{
		{head: "NODE"}, {head: "UNIT"}, {head: "CPUS FREE", right: true}, {head: "STREAM", right: true, spare: 2}, {head: "MEMORY FREE", right: true},
		{head: "GPU MEMORY FREE", right: true}, {head: "RUNNING", right: true}, {head: "WAITING", right: true}, {head: "ROOM", right: true}, {head: "WAIT", right: true, spare: 1},
	}}
	for _, n := range nodes {
		for _, u := range n.Units {
			if u.Cpus.Total == 0 && u.Memory.Total == 0 {
				t.add(cell{n.Name, ""}, cell{u.Name, ""}, cell{}, cell{}, cell{}, cell{u.cards(), ""}, cell{}, cell{}, cell{}, cell{})
				continue
			}
			running := fmt.Sprint(u.Running)
			if u.RunLimit > 0 {
				running += fmt.Sprintf("/%d", u.RunLimit)
			}
			wait := ""
			if u.Waiting+u.Room > 0 {
				wait = span(time.Duration(u.Wait * float64(time.Second)))
			}
			t.add(cell{n.Name, ""}, cell{u.Name, ""}, cell{fmt.Sprintf("%g/%g", u.Cpus.Free, u.Cpus.Total), ""}, cell{fmt.Sprintf("%g", u.Stream), ""},
				cell{sizes(u.Memory), ""}, cell{u.cards(), ""}, cell{running, ""}, cell{fmt.Sprint(u.Waiting), ""}, cell{fmt.Sprint(u.Room), ""}, cell{wait, ""})
		}
	}
	t.drop("GPU MEMORY FREE", "WAIT")
	return t
}

// cards is what is free of the unit's GPUs.
func (u *unit) cards() string {
	if len(u.GPUs) == 0 {
		return ""
	}
	var sum amount
	for _, g := range u.GPUs {
		sum.Free, sum.Total = sum.Free+g.Memory.Free, sum.Total+g.Memory.Total
	}
	return sizes(sum)
}
