package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

const overrideHint = "Say for which tasks it is: tasks = [0, 5] or tasks = \"0-9,20\"."

// readOverrides reads the override blocks: other resources, requirements or rank for some
// tasks. Of two blocks for the same task the later one counts.
func (b taskSetReader) readOverrides() {
	columns := map[string][]string{}
	for _, block := range b.body.Blocks {
		if block.Type == "override" {
			b.readOverride(block, columns)
		}
	}
	for _, attr := range sortedKeys(columns) {
		b.columns = slices.DeleteFunc(b.columns, func(c TaskColumn) bool { return c.Name == attr })
		b.overrideColumn(attr, columns[attr])
	}
}

func (b taskSetReader) readOverride(block *hclsyntax.Block, columns map[string][]string) {
	names := []string{"tasks", "cpus", "memory", "disk", "gpus", "gpu_memory", "disk_io", "network", "processes",
		"walltime", "requirements", "rank"}
	if !b.parser.refuseLabels(block, "override { tasks = [0] … }") ||
		!b.parser.refuseUnknown(block, "an override", names, nil) {
		return
	}
	a := block.Body.Attributes["tasks"]
	if a == nil {
		b.reportProblem(block.TypeRange, "this override is for no task", overrideHint)
		return
	}
	v, ok := b.parser.constantExpr(a.Expr)
	if !ok || b.tasks.isInvalid {
		return
	}
	chosen, ok := b.readTaskList(v, a.Expr.Range())
	if !ok {
		return
	}
	for n, row := len(chosen), b.tasks.perJob(); row < b.tasks.count; row += b.tasks.perJob() {
		for _, i := range chosen[:n] { // the same tasks of the other jobs
			chosen = append(chosen, row+i)
		}
	}
	for _, q := range quantities() {
		if a := block.Body.Attributes[q.name]; a != nil && b.parser.checkNames(a.Expr, b.taskRoots()) {
			if values, ok := b.resourceReader().readQuantity(q, a.Expr); ok {
				b.setColumnValues(columns, q.attribute, chosen, values)
			}
		}
	}
	b.resourceReader().resolveOverrideGPUs(block, columns, chosen)
	for _, c := range [][2]string{{"requirements", roost.AttrRequirements}, {"rank", roost.AttrRank}} {
		if a := block.Body.Attributes[c[0]]; a != nil && b.parser.checkNames(a.Expr, b.taskRoots("machine")) {
			if values, ok := b.constraintReader().constraintText(a.Expr, c[0]); ok {
				b.setColumnValues(columns, c[1], chosen, values)
			}
		}
	}
}

// setColumnValues sets values in a column. A new column starts with the values without
// overrides.
func (b taskSetReader) setColumnValues(columns map[string][]string, attr string, chosen []int, values []string) {
	if columns[attr] == nil {
		columns[attr] = b.baseColumn(attr)
	}
	for _, i := range chosen {
		if len(values) == 1 {
			columns[attr][i] = values[0]
		} else {
			columns[attr][i] = values[i]
		}
	}
}

// baseColumn returns the column of an attribute as the job sets it without overrides.
func (b taskSetReader) baseColumn(attr string) []string {
	for _, c := range b.columns {
		if c.Name == attr {
			return slices.Clone(c.Values)
		}
	}
	text := "undefined"
	if attr == roost.AttrProcesses {
		text = "1" // of an MPI gang
	}
	if e, ok := b.ad.Lookup(attr); ok {
		text = e.String()
	} else if attr == roost.AttrRequirements {
		text = "true"
	} else if attr == roost.AttrRank || attr == roost.AttrRequestGpuMem || attr == roost.AttrProcesses &&
		!b.transferReader().isMPIGang() {
		text = "0"
	}
	switch attr {
	case roost.AttrRequestMemory, roost.AttrRequestGpuMem:
		n, _ := b.ad.Int(attr)
		text = strconv.FormatInt(n*int64(roost.MiB), 10)
	case roost.AttrRequestDisk, roost.AttrRequestDiskIO, roost.AttrRequestNet:
		n, _ := b.ad.Int(attr)
		text = strconv.FormatInt(n*int64(roost.KiB), 10)
	case roost.AttrRequestCpus:
		f, _ := b.ad.Real(attr)
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return slices.Repeat([]string{text}, b.tasks.count)
}

// readTaskList reads a list of tasks such as [0, 5] or "0-9,20".
func (b taskSetReader) readTaskList(v cty.Value, at hcl.Range) ([]int, bool) {
	var list []int
	add := func(first, last int64) bool {
		if first < 0 || last >= int64(b.tasks.perJob()) || first > last {
			b.reportProblem(at, "there is no such task",
				fmt.Sprintf("Tasks are counted from 0, and the job has %d: the last one is %d.", b.tasks.perJob(),
					b.tasks.perJob()-1))
			return false
		}
		for i := first; i <= last; i++ {
			list = append(list, int(i))
		}
		return len(list) <= 2*b.tasks.count
	}
	switch ty := v.Type(); {
	case v.IsNull():
	case ty == cty.Number:
		n, _ := v.AsBigFloat().Int64()
		return list, v.AsBigFloat().IsInt() && add(n, n)
	case ty == cty.String:
		for _, part := range strings.Split(v.AsString(), ",") {
			low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
			if !ranged {
				high = low
			}
			first, err1 := strconv.ParseInt(low, 10, 32)
			last, err2 := strconv.ParseInt(high, 10, 32)
			if err1 != nil || err2 != nil {
				b.reportProblem(at, fmt.Sprintf("%q names no tasks", truncateText(v.AsString())), overrideHint)
				return nil, false
			}
			if !add(first, last) {
				return nil, false
			}
		}
		return list, true
	case v.CanIterateElements() && !ty.IsMapType() && !ty.IsObjectType():
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			n, ok := b.checkInteger(x, at, "a task", 0, int64(b.tasks.perJob())-1, overrideHint)
			if !ok || !add(n, n) {
				return nil, false
			}
		}
		return list, true
	}
	b.reportProblem(at, "tasks has to be a list of numbers",
		fmt.Sprintf("It is %s. %s", describeValue(v), overrideHint))
	return nil, false
}
