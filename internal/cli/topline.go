package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Shares of what was asked for from which use stands out.
const (
	nearly = 0.85
	almost = 0.97
)

// table has a line for each task. In a narrow window what can be found elsewhere goes first.
func (m *meter) table(tasks []gauge) *table {
	t := &table{columns: []column{
		{head: "ID"}, {head: "NAME", least: 6, spare: 2}, {head: "OWNER", least: 6, spare: 6}, {head: "STATE", spare: 7}, {head: "CPU", right: true}, {head: "MEMORY", right: true},
		{head: "PEAK", right: true, spare: 3}, {head: "GPU", right: true, spare: 1}, {head: "GPU MEM", right: true, spare: 1}, {head: "DISK", right: true, spare: 8}, {head: "READ", right: true, spare: 9}, {head: "WRITE", right: true, spare: 9},
		{head: "PROCS", right: true, spare: 10}, {head: "TIME", right: true, spare: 4}, {head: "NODE", least: 6, spare: 5},
	}}
	for _, g := range tasks {
		t.add(m.line(g)...)
	}
	t.drop("OWNER", "STATE", "GPU", "GPU MEM", "DISK", "READ", "WRITE", "PROCS")
	return t
}

// line is what is shown of one task. What was not measured is empty, and not 0.
func (m *meter) line(g gauge) []cell {
	u, r := g.GetUsage(), g.GetRequest().Vector()
	owner, state := "", ""
	if m.flag("all") {
		owner = printable(g.GetOwner())
	}
	if s := stateOf(g.JobStatus); s != roost.Running.String() || u.GetFrozen() {
		state = roost.Suspended.String()
	}
	cells := []cell{{g.GetId(), ""}, {printable(g.GetName()), ""}, {owner, ""}, {state, yellow}}
	if !g.known {
		for range 9 {
			cells = append(cells, cell{"-", dim})
		}
		return append(cells, cell{m.taken(g.JobStatus), ""}, cell{g.GetNode(), ""})
	}
	gpu, gpuMemory := "", cell{}
	if r.GPUs > 0 {
		gpu = fmt.Sprintf("%s/%d", decimal(u.GetGpu()), r.GPUs)
		gpuMemory = against(u.GetGpuMemory(), int64(r.GPUMemory)*int64(max(r.GPUs, 1)))
	}
	return append(cells,
		cell{fmt.Sprintf("%s/%v", decimal(g.cores), r.CPU), ""}, against(u.GetMemory(), int64(r.Memory)), cell{some(u.GetPeakMemory(), ""), ""},
		cell{gpu, ""}, gpuMemory, against(u.GetDisk(), int64(r.Disk)), cell{some(int64(g.read), "/s"), ""}, cell{some(int64(g.write), "/s"), ""},
		cell{strings.TrimPrefix(strconv.FormatUint(uint64(u.GetProcesses()), 10), "0"), ""}, cell{m.taken(g.JobStatus), ""}, cell{g.GetNode(), ""})
}

// against is an amount in use and what was asked for; nothing where both are.
func against(used, asked int64) cell {
	if asked <= 0 {
		return cell{some(used, ""), ""}
	}
	c := cell{size(roost.Bytes(used)) + "/" + size(roost.Bytes(asked)), ""}
	switch share := float64(used) / float64(asked); {
	case share >= almost:
		c.colour = red
	case share >= nearly:
		c.colour = yellow
	}
	return c
}

// some is an amount that is worth a word.
func some(n int64, unit string) string {
	if n <= 0 {
		return ""
	}
	return size(roost.Bytes(n)) + unit
}

// size is an amount in three digits at most, as it is to be taken in at a glance: "612M", "1.4G".
func size(b roost.Bytes) string {
	units, value := "BKMGTP", float64(b)
	i := 0
	for value >= 999.5 && i < len(units)-1 {
		value /= 1024
		i++
	}
	if i > 0 && value < 9.95 {
		return strconv.FormatFloat(value, 'f', 1, 64) + units[i:i+1]
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + units[i:i+1]
}

// printJSON prints all tasks, each as every command does.
func (m *meter) printJSON(tasks []gauge) error {
	records := make([]jobRecord, len(tasks))
	for i, g := range tasks {
		records[i] = recordOf(g.JobStatus, true)
	}
	return printJSON(m.stdout, document{"tasks": records})
}
