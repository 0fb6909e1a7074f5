package view

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// OrderKey is what rows are sorted by: a number or a text, and then the row's name. No
// two rows have the same name.
type OrderKey struct {
	Number float64 `json:"n,omitempty"`
	Text   string  `json:"t,omitempty"`
	Name   string  `json:"id"`
}

// compare orders two keys. Numbers within texts count as such: n2 is before n10.
func (k OrderKey) compare(other OrderKey) int {
	return cmp.Or(cmp.Compare(k.Number, other.Number), document.CompareNames(k.Text, other.Text),
		document.CompareNames(k.Name, other.Name), strings.Compare(k.Name, other.Name))
}

// numberKey returns a key by a number. An ad may have one that JSON has not.
func numberKey(n float64) OrderKey {
	if math.IsNaN(n) {
		n = 0
	}
	return OrderKey{Number: min(max(n, -math.MaxFloat64), math.MaxFloat64)}
}

func textKey(text string) OrderKey { return OrderKey{Text: text} }

// listColumn is a column that a list of rows may have on its page.
type listColumn[R any] struct {
	name, head string
	number     bool // it is written to the right
	extra      bool // it is shown only if the address asks for it
	key        func(*R) OrderKey
}

// ListLayout is the columns of a list on a page, and which it is sorted by. The address
// alone says so: nothing is stored.
type ListLayout struct {
	Columns []LayoutColumn // without that of the rows' names, which is always there
	Name    LayoutColumn   // of the rows' names
	Sort    string         // as the address has it; empty: the order of the list itself
}

// LayoutColumn is one column.
type LayoutColumn struct {
	Name, Head    string
	Number, Shown bool
	Order         string // "ascending" or "descending", as aria-sort has it; empty: neither
	Next          string // of the parameter sort, for the link in the heading
}

// Shown lists the columns that are shown.
func (l ListLayout) Shown() []LayoutColumn {
	return slices.DeleteFunc(slices.Clone(l.Columns), func(c LayoutColumn) bool { return !c.Shown })
}

// rowSort is the order of a list that is sorted by a column.
type rowSort[R any] struct {
	text       string // as the address has it
	key        func(*R) OrderKey
	name       func(*R) string
	descending bool
	limit      int
	after      *OrderKey // the last row of the part before; nil: this is the first part

	part []sortedRow[R]
	more bool // there are rows behind those of the part
}

type sortedRow[R any] struct {
	key OrderKey
	row R
}

// layoutOf reads which columns the address asks for, and by which the list is sorted. The
// first of all is the column of the rows' names. by is nil if the list keeps its order.
func layoutOf[R any](c *route.Call, all []listColumn[R], name func(*R) string) (l ListLayout, by *rowSort[R],
	err error) {
	q := c.Request.URL.Query()
	asked := strings.FieldsFunc(strings.Join(q["columns"], ","), func(r rune) bool { return r == ',' })
	l.Sort = q.Get("sort")
	sortName, descending := strings.CutPrefix(l.Sort, "-")
	if sortName == "" {
		l.Sort = ""
	}
	var names []string
	for i, column := range all {
		names = append(names, column.name)
		shown := LayoutColumn{Name: column.name, Head: column.head, Number: column.number, Next: column.name,
			Shown: len(asked) == 0 && !column.extra || slices.Contains(asked, column.name)}
		if l.Sort != "" && column.name == sortName {
			shown.Order, shown.Next = "ascending", "-"+column.name
			if descending {
				shown.Order, shown.Next = "descending", column.name
			}
			by = &rowSort[R]{text: l.Sort, key: column.key, name: name, descending: descending}
		}
		if i == 0 {
			l.Name = shown
		} else {
			l.Columns = append(l.Columns, shown)
		}
	}
	for _, word := range append(asked, sortName) {
		if word != "" && !slices.Contains(names, word) {
			return l, nil, fmt.Errorf("column %.40q: %w: columns and sort have %s", word, roost.Invalid,
				strings.Join(names, ", "))
		}
	}
	return l, by, nil
}

// maxOrderCursor bounds a cursor of a sorted list in an address, in characters.
const maxOrderCursor = 2 << 10

// begin prepares for the rows of the part of a list after a cursor.
func (s *rowSort[R]) begin(limit int, after string) error {
	s.limit = limit
	if after == "" {
		return nil
	}
	bad := fmt.Errorf("after: %w: it is no cursor of this list in this order: begin at the first part", roost.Invalid)
	order, cursor, ok := strings.Cut(after, ".")
	if !ok || order != s.text || len(cursor) > maxOrderCursor {
		return bad
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &s.after) != nil || s.after == nil {
		return bad
	}
	return nil
}

// compare orders two keys in the direction of the list.
func (s *rowSort[R]) compare(a, b OrderKey) int {
	if s.descending {
		return b.compare(a)
	}
	return a.compare(b)
}

// maxOrderText bounds the text of a key, in bytes.
const maxOrderText = 512

// add takes one row of the list, in any order. Of all rows it keeps those of the part.
func (s *rowSort[R]) add(row R) {
	key := s.key(&row)
	key.Name = s.name(&row)
	key.Text = strings.ToValidUTF8(key.Text[:min(len(key.Text), maxOrderText)], "") // as a cursor has it
	if s.after != nil && s.compare(key, *s.after) <= 0 {
		return
	}
	if len(s.part) == s.limit && s.compare(key, s.part[s.limit-1].key) > 0 {
		s.more = true
		return
	}
	at, _ := slices.BinarySearchFunc(s.part, key, func(r sortedRow[R], k OrderKey) int { return s.compare(r.key, k) })
	s.part = slices.Insert(s.part, at, sortedRow[R]{key, row})
	if len(s.part) > s.limit {
		s.part, s.more = s.part[:s.limit], true
	}
}

// rows returns the rows of the part in order, and the cursor of the next; empty: there is
// none.
func (s *rowSort[R]) rows() (rows []R, next string) {
	rows = make([]R, len(s.part))
	for i, r := range s.part {
		rows[i] = r.row
	}
	if s.more {
		text, err := json.Marshal(s.part[len(s.part)-1].key)
		if err == nil { // numbers are finite
			next = s.text + "." + base64.RawURLEncoding.EncodeToString(text)
		}
	}
	return rows, next
}
