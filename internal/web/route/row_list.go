package route

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/linetext"
)

// RowList is a view whose rows are no member of a struct, or whose CSV has columns of its
// own.
type RowList interface {
	RowList() RowTable
}

// RowTable is the rows of a view: a slice, with a line of JSON for each element. CSV has
// either members of the rows as columns, or cells of its own.
type RowTable struct {
	Rows    any
	Columns [][]string // the names on the way to the member of each; unused with Cells

	Heads []string
	Cells func(i int) ([]string, error) // texts of the row i, not quoted; nil: as Columns say
}

// rowList is the rows of a view that are read one by one.
type rowList struct {
	RowTable
	rows reflect.Value
}

// Columns returns the columns of rows of a type, in the order of its JSON members.
func Columns[T any]() [][]string { return columnPaths(reflect.TypeFor[T](), nil) }

// rowListOf finds the rows of a view: the member of that name.
func rowListOf(data any, name string) (l rowList, err error) {
	if list, ok := data.(RowList); ok {
		table := list.RowList()
		return rowList{table, reflect.ValueOf(table.Rows)}, nil
	}
	v := reflect.Indirect(reflect.ValueOf(data))
	if v.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if member, _, _ := strings.Cut(f.Tag.Get("json"), ","); member == name && f.Type.Kind() == reflect.Slice {
				return rowList{RowTable{Columns: columnPaths(f.Type.Elem(), nil)}, v.FieldByIndex(f.Index)}, nil
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

// heads returns the headings of CSV.
func (l rowList) heads() (heads []string) {
	if l.Cells != nil {
		return l.Heads
	}
	for _, path := range l.Columns {
		heads = append(heads, strings.Join(path, "."))
	}
	return heads
}

// cells returns a row of CSV.
func (l rowList) cells(i int) (cells []string, err error) {
	if l.Cells != nil {
		texts, err := l.Cells(i)
		for _, text := range texts {
			cells = append(cells, linetext.QuoteFormula(text))
		}
		return cells, err
	}
	text, err := l.text(i)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%w: row %d: %w", roost.Internal, i, err)
	}
	for _, path := range l.Columns {
		cells = append(cells, cellText(memberAt(members, path)))
	}
	return cells, nil
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

// memberAt returns a member by the names on the way to it; nil: it is not there.
func memberAt(members map[string]json.RawMessage, path []string) json.RawMessage {
	for ; len(path) > 1; path = path[1:] {
		var inner map[string]json.RawMessage
		if json.Unmarshal(members[path[0]], &inner) != nil { // it is no object in this row
			return nil
		}
		members = inner
	}
	return members[path[0]]
}

// cellText returns a value as a cell. What is no text, number or truth stays JSON.
func cellText(value json.RawMessage) string {
	if len(value) == 0 || string(value) == "null" {
		return ""
	}
	var text string
	if value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return linetext.QuoteFormula(text)
	}
	return string(value)
}
