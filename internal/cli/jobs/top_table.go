package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Shares of what was asked for from which use stands out.
const (
	nearFraction = 0.85
	warnFraction = 0.97
)

// taskTable has a line for each task. In a narrow window what can be found elsewhere goes
// first.
func (m *topView) taskTable(tasks []taskRates) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "ID"}, {Head: "NAME", MinWidth: 6, DropPriority: 2}, {Head: "OWNER", MinWidth: 6, DropPriority: 6},
		{Head: "STATE", DropPriority: 7}, {Head: "CPU", RightAligned: true}, {Head: "MEMORY", RightAligned: true},
		{Head: "PEAK", RightAligned: true, DropPriority: 3}, {Head: "GPU", RightAligned: true, DropPriority: 1},
		{Head: "GPU MEM", RightAligned: true, DropPriority: 1}, {Head: "DISK", RightAligned: true, DropPriority: 8},
		{Head: "READ", RightAligned: true, DropPriority: 9}, {Head: "WRITE", RightAligned: true, DropPriority: 9},
		{Head: "PROCS", RightAligned: true, DropPriority: 10}, {Head: "TIME", RightAligned: true, DropPriority: 4},
		{Head: "NODE", MinWidth: 6, DropPriority: 5},
	}}
	for _, g := range tasks {
		t.AddRow(m.taskLine(g)...)
	}
	t.DropEmptyColumns("OWNER", "STATE", "GPU", "GPU MEM", "DISK", "READ", "WRITE", "PROCS")
	return t
}

// taskLine is what is shown of one task. What was not measured is empty, and not 0.
func (m *topView) taskLine(g taskRates) []frame.TableCell {
	u, r := g.GetUsage(), g.GetRequest().Vector()
	owner, state := "", ""
	if m.Flag("all") {
		owner = document.PrintableText(g.GetOwner())
	}
	if s := document.StateOf(g.JobStatus); s != roost.Running.String() || u.GetFrozen() {
		state = roost.Suspended.String()
	}
	cells := []frame.TableCell{{Text: g.GetId()}, {Text: document.PrintableText(g.GetName())}, {Text: owner},
		{Text: state, Colour: frame.Yellow}}
	if !g.isMeasured {
		for range 9 {
			cells = append(cells, frame.TableCell{Text: "-", Colour: frame.Dim})
		}
		return append(cells, frame.TableCell{Text: m.RunTimeText(g.JobStatus)}, frame.TableCell{Text: g.GetNode()})
	}
	gpu, gpuMemory := "", frame.TableCell{}
	if r.GPUs > 0 {
		gpu = fmt.Sprintf("%s/%d", oneDecimal(u.GetGpu()), r.GPUs)
		gpuMemory = usedOfRequest(u.GetGpuMemory(), int64(r.GPUMemory)*int64(max(r.GPUs, 1)))
	}
	return append(cells,
		frame.TableCell{Text: fmt.Sprintf("%s/%v", oneDecimal(g.cores), r.CPU)},
		usedOfRequest(u.GetMemory(), int64(r.Memory)),
		frame.TableCell{Text: textOrDash(u.GetPeakMemory(), "")},
		frame.TableCell{Text: gpu}, gpuMemory, usedOfRequest(u.GetDisk(), int64(r.Disk)),
		frame.TableCell{Text: textOrDash(int64(g.read), "/s")}, frame.TableCell{Text: textOrDash(int64(g.write), "/s")},
		frame.TableCell{Text: strings.TrimPrefix(strconv.FormatUint(uint64(u.GetProcesses()), 10), "0")},
		frame.TableCell{Text: m.RunTimeText(g.JobStatus)}, frame.TableCell{Text: g.GetNode()})
}

// usedOfRequest is an amount in use and what was asked for; nothing where both are.
func usedOfRequest(used, asked int64) frame.TableCell {
	if asked <= 0 {
		return frame.TableCell{Text: textOrDash(used, "")}
	}
	c := frame.TableCell{Text: sizeText(roost.Bytes(used)) + "/" + sizeText(roost.Bytes(asked))}
	switch share := float64(used) / float64(asked); {
	case share >= warnFraction:
		c.Colour = frame.Red
	case share >= nearFraction:
		c.Colour = frame.Yellow
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

// sizeText is an amount in at most three digits, to be read at a glance: "612M", "1.4G".
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

// printJSON prints all tasks as records, as other commands do.
func (m *topView) printJSON(tasks []taskRates) error {
	found := make([]*scheddapi.JobStatus, len(tasks))
	for i, g := range tasks {
		found[i] = g.JobStatus
	}
	return jobsJSON(m.Invocation, "tasks", found, m.missing, true)
}

// oneDecimal is a number of cores or GPUs.
func oneDecimal(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
