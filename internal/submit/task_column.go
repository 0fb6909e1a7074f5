package submit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// reservedColumns are the names with a meaning in every ad, and those whose columns
// override an attribute.
var reservedColumns = []string{
	taskIndex, "JobId", jobSequence, "JobHost", "NodeName", "ArrayDigit", "Attempt", arrayIndex, roost.AttrRequestCpus,
	roost.AttrRequestMemory,
	roost.AttrRequestDisk, roost.AttrRequestGpus,
	roost.AttrRequestGpuMem, roost.AttrRequestDiskIO, roost.AttrRequestNet,
	roost.AttrRequirements, roost.AttrRank, roost.AttrWalltime, roost.AttrProcesses,
}

// addColumn adds a column under a name like want, and records the source text that it
// replaces. It returns the column's name.
func (b taskSetReader) addColumn(want, source string, values []string) string {
	name := uniqueColumnName(want, b.columns)
	if len(b.columns) == roost.MaxColumns {
		b.parser.reportOnce("columns", newDiagnostic(b.block.DefRange().Ptr(),
			"this job differs between its tasks in too many ways",
			fmt.Sprintf("Each expression that computes with task.index or each is a column, and a job has at most "+
				"%d of them.", roost.MaxColumns)))
		return name
	}
	b.columns = append(b.columns, TaskColumn{Name: name, Values: values})
	if source != "" {
		b.columnByExpr[source] = name
	}
	return name
}

// uniqueColumnName makes a column name of want. It has letters, digits and underscores,
// and differs from the taken names in more than case.
func uniqueColumnName(want string, taken []TaskColumn) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, want)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' {
		clean = "v" + clean
	}
	name := clean
	for n := 2; isNameTaken(name, taken); n++ {
		name = clean + strconv.Itoa(n)
	}
	return name
}

func isNameTaken(name string, taken []TaskColumn) bool {
	for _, r := range reservedColumns {
		if strings.EqualFold(r, name) {
			return true
		}
	}
	for _, c := range taken {
		if strings.EqualFold(c.Name, name) {
			return true
		}
	}
	return false
}

// overrideColumn makes a column that overrides an attribute for each task. It makes none
// and returns true if all tasks have the same value.
func (b taskSetReader) overrideColumn(attr string, values []string) (same bool) {
	same = true
	for _, v := range values {
		if v != values[0] {
			same = false
			break
		}
	}
	if !same {
		b.columns = append(b.columns, TaskColumn{Name: attr, Values: values})
	}
	return same
}
