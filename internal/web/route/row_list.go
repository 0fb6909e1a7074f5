package route

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/roost-batch/roost"
)

// RowList is a view whose rows are no member of a struct. rows is a slice, and columns
// are the names on the way to the value of each column.
type RowList interface {
	RowList() (rows any, columns [][]string)
}

// rowList is the rows of a view: a slice, and its columns.
type rowList struct {
	rows    reflect.Value
	columns [][]string
}

// Columns returns the columns of rows of a type, in the order of its JSON members.
func Columns[T any]() [][]string { return columnPaths(reflect.TypeFor[T](), nil) }

// rowListOf finds the rows of a view: the member of that name.
func rowListOf(data any, name string) (l rowList, err error) {
	if list, ok := data.(RowList); ok {
		rows, columns := list.RowList()
		return rowList{reflect.ValueOf(rows), columns}, nil
	}
	v := reflect.Indirect(reflect.ValueOf(data))
	if v.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if member, _, _ := strings.Cut(f.Tag.Get("json"), ","); member == name && f.Type.Kind() == reflect.Slice {
				return rowList{v.FieldByIndex(f.Index), columnPaths(f.Type.Elem(), nil)}, nil
			}
		}
	}
	return l, fmt.Errorf("%w: %T has no list %q", roost.Internal, data, name)
}

func (l rowList) len() int { return l.rows.Len() }

// text returns a row as JSON.
func (l rowList) text(i int) (json.RawMessage, error) {
	text, err := json.Marshal(l.rows.Index(i).Interface())
	if err != nil {
		err = fmt.Errorf("%w: row %d: %w", roost.Internal, i, err)
	}
	return text, err
}

// maxColumnDepth bounds how deep members are columns of their own.
const maxColumnDepth = 4

// columnPaths returns the columns of a type of rows, in the order of its JSON members.
// Each is the names on the way to a value that is no object of known members.
func columnPaths(t reflect.Type, prefix []string) (all [][]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	if t.Kind() != reflect.Struct || len(prefix) == maxColumnDepth || t.Implements(marshaler) ||
		reflect.PointerTo(t).Implements(marshaler) {
		if len(prefix) == 0 {
			return nil
		}
		return [][]string{prefix}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, columnPaths(f.Type, prefix)...)
		case name == "-" || !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			all = append(all, columnPaths(f.Type, append(prefix[:len(prefix):len(prefix)], name))...)
		}
	}
	return all
}
