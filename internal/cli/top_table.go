package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Shares of what was asked for from which use stands out.
const (
	nearFraction = 0.85
	warnFraction = 0.97
)

// taskTable has a line for each task. In a narrow window what can be found elsewhere goes
// first.
func (m *topView) taskTable(tasks []taskRates) *textTable {
	t := &textTable{columns: []tableColumn{
		{head: "ID"}, {head: "NAME", minWidth: 6, dropPriority: 2}, {head: "OWNER", minWidth: 6, dropPriority: 6},
		{head: "STATE", dropPriority: 7}, {head: "CPU", rightAligned: true}, {head: "MEMORY", rightAligned: true},
		{head: "PEAK", rightAligned: true, dropPriority: 3}, {head: "GPU", rightAligned: true, dropPriority: 1},
		{head: "GPU MEM", rightAligned: true, dropPriority: 1}, {head: "DISK", rightAligned: true, dropPriority: 8},
		{head: "READ", rightAligned: true, dropPriority: 9}, {head: "WRITE", rightAligned: true, dropPriority: 9},
		{head: "PROCS", rightAligned: true, dropPriority: 10}, {head: "TIME", rightAligned: true, dropPriority: 4},
		{head: "NODE", minWidth: 6, dropPriority: 5},
	}}
	for _, g := range tasks {
		t.addRow(m.taskLine(g)...)
	}
	t.dropEmptyColumns("OWNER", "STATE", "GPU", "GPU MEM", "DISK", "READ", "WRITE", "PROCS")
	return t
}

// taskLine is what is shown of one task. What was not measured is empty, and not 0.
func (m *topView) taskLine(g taskRates) []tableCell {
	u, r := g.GetUsage(), g.GetRequest().Vector()
	owner, state := "", ""
	if m.flag("all") {
		owner = printableText(g.GetOwner())
	}
	if s := stateOf(g.JobStatus); s != roost.Running.String() || u.GetFrozen() {
		state = roost.Suspended.String()
	}
	cells := []tableCell{{g.GetId(), ""}, {printableText(g.GetName()), ""}, {owner, ""}, {state, yellow}}
	if !g.isMeasured {
		for range 9 {
			cells = append(cells, tableCell{"-", dim})
		}
		return append(cells, tableCell{m.runTimeText(g.JobStatus), ""}, tableCell{g.GetNode(), ""})
	}
	gpu, gpuMemory := "", tableCell{}
	if r.GPUs > 0 {
		gpu = fmt.Sprintf("%s/%d", oneDecimal(u.GetGpu()), r.GPUs)
		gpuMemory = usedOfRequest(u.GetGpuMemory(), int64(r.GPUMemory)*int64(max(r.GPUs, 1)))
	}
	return append(cells,
		tableCell{fmt.Sprintf("%s/%v", oneDecimal(g.cores), r.CPU), ""}, usedOfRequest(u.GetMemory(), int64(r.Memory)),
		tableCell{textOrDash(u.GetPeakMemory(), ""), ""},
		tableCell{gpu, ""}, gpuMemory, usedOfRequest(u.GetDisk(), int64(r.Disk)),
		tableCell{textOrDash(int64(g.read), "/s"), ""}, tableCell{textOrDash(int64(g.write), "/s"), ""},
		tableCell{strings.TrimPrefix(strconv.FormatUint(uint64(u.GetProcesses()), 10), "0"), ""},
		tableCell{m.runTimeText(g.JobStatus), ""}, tableCell{g.GetNode(), ""})
}

// usedOfRequest is an amount in use and what was asked for; nothing where both are.
func usedOfRequest(used, asked int64) tableCell {
	if asked <= 0 {
		return tableCell{textOrDash(used, ""), ""}
	}
	c := tableCell{sizeText(roost.Bytes(used)) + "/" + sizeText(roost.Bytes(asked)), ""}
	switch share := float64(used) / float64(asked); {
	case share >= warnFraction:
		c.colour = red
	case share >= nearFraction:
		c.colour = yellow
	}
	return c
}

// textOrDash is an amount that is worth a word.
func textOrDash(n int64, unit string) string {
	if n <= 0 {
		return ""
	}
	return sizeText(roost.Bytes(n)) + unit
}

// sizeText is an amount in three digits at most, as it is to be taken in at a glance:
// "612M", "1.4G".
func sizeText(b roost.Bytes) string {
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
func (m *topView) printJSON(tasks []taskRates) error {
	records := make([]jobRecord, len(tasks))
	for i, g := range tasks {
		records[i] = jobRecordOf(g.JobStatus, true)
	}
	return printJSON(m.stdout, jsonDocument{"tasks": records})
}

// oneDecimal is a number of cores or GPUs.
func oneDecimal(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
