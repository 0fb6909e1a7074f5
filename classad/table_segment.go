package classad

// tableSegment holds the rows of a table whose columns are of the same classes and whose
// open expressions are the same: the rows that one compiled program can look at side by
// side.
type tableSegment struct {
	rows []RowID         // by place
	cols []segmentColumn // by attribute of the table's schema
	// attributes of which all its rows have, or have not, one: what a name means in their
	// expressions depends on it
	checkedAttrs rowSet
	presentAttrs rowSet // of these, the ones that its rows have
	rowByRow     bool   // its rows do not fit into columns and are evaluated one by one
	shapeVersion int    // rises when a column without values becomes one of a class
}

// add makes room for a row and says where. Its cells have to be put.
func (s *tableSegment) add(r RowID) int {
	n := len(s.rows)
	s.rows = append(s.rows, r)
	for c := range s.cols {
		s.cols[c].addRow(n)
		s.cols[c].clearRow(n)
	}
	return n
}

// drop takes a row away; the last one, which it returns, takes its place. Without another
// row it returns -1.
func (s *tableSegment) drop(i int) (moved RowID) {
	last := len(s.rows) - 1
	for c := range s.cols {
		s.cols[c].removeRow(i, last)
	}
	moved = s.rows[last]
	s.rows[i] = moved
	s.rows = s.rows[:last]
	if i == last {
		return -1
	}
	return moved
}

// addColumns gives the segment columns for attributes that the schema has got since.
func (s *tableSegment) addColumns(attrs []schemaColumn) {
	for len(s.checkedAttrs) < len(attrs)/64+1 {
		s.checkedAttrs, s.presentAttrs = append(s.checkedAttrs, 0), append(s.presentAttrs, 0)
	}
	for c := len(s.cols); c < len(attrs); c++ {
		s.cols = append(s.cols, segmentColumn{class: attrs[c].usualClass})
		col := &s.cols[c]
		col.addRow(len(s.rows))
		for i := range s.rows {
			col.clearRow(i)
		}
	}
}
