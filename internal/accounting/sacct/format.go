package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
)

// Column is a field in a list of fields.
type Column struct {
	Field
	Left bool // aligned to the left
}

// DefaultFormat is the list of fields of sacct without --format.
const DefaultFormat = "jobid,jobname,partition,account,alloccpus,state,exitcode"

// maxColumns and maxWidth bound what a list of fields can ask for.
const (
	maxColumns = 200
	maxWidth   = 1000
)

// ParseFormat reads a list of fields as --format takes it, such as
// "jobid,state%20,jobname%-30". A negative width aligns to the left.
func ParseFormat(list string) ([]Column, error) {
	var columns []Column
	all := slices.Concat(Fields(), SlurmFields())
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, width, sized := strings.Cut(item, "%")
		i := slices.IndexFunc(all, func(f Field) bool { return strings.EqualFold(f.Name, name) })
		if i < 0 {
			return nil, unknownField(name, all)
		}
		c := Column{Field: all[i]}
		if sized {
			n, err := strconv.Atoi(width)
			if err != nil || n == 0 || n < -maxWidth || n > maxWidth {
				return nil, fmt.Errorf("format: %w: %.40q has no width from 1 to %d behind the %%, as in %s%%20",
					roost.Invalid, item, maxWidth, c.Name)
			}
			c.Width, c.Left = max(n, -n), n < 0
		}
		if columns = append(columns, c); len(columns) > maxColumns {
			return nil, fmt.Errorf("format: %w: it has more than %d fields", roost.Invalid, maxColumns)
		}
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("format: %w: it names no field; write for instance %s", roost.Invalid, DefaultFormat)
	}
	return columns, nil
}

// IsField reports whether there is a field of a name, in any case.
func IsField(name string) bool {
	return slices.ContainsFunc(slices.Concat(Fields(), SlurmFields()), func(f Field) bool {
		return strings.EqualFold(f.Name, name)
	})
}

func unknownField(name string, all []Field) error {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
	}
	hint := "--helpformat lists the fields"
	if near := suggest.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fmt.Errorf("format: %w: there is no field %.40q; %s", roost.Invalid, name, hint)
}

// FieldList returns the names of all fields in four columns, as --helpformat prints them.
func FieldList() string {
	var b strings.Builder
	for i, f := range Fields() {
		if b.WriteString(f.Name); i%4 == 3 {
			b.WriteByte('\n')
		} else {
			b.WriteString(strings.Repeat(" ", 18-len(f.Name)))
		}
	}
	return strings.TrimRight(b.String(), " \n") + "\n"
}
