package classad

// tableSegment holds the rows of a table whose columns have the same classes and
// templates. One compiled program can process all of them.
type tableSegment struct {
	rows []RowID         // by place in the segment
	cols []segmentColumn // by attribute of the table's schema
	// attributes that either all rows have or none has, because the meaning of a name in
	// an expression depends on it
	checkedAttrs rowSet
	presentAttrs rowSet // those of checkedAttrs that the rows have
	rowByRow     bool   // the rows do not fit into columns and are evaluated one by one
	shapeVersion int    // rises when a column without values gets a class
}

// add makes room for a row and returns its place. The caller must write its cells.
func (s *tableSegment) add(r RowID) int {
	n := len(s.rows)
	s.rows = append(s.rows, r)
	for c := range s.cols {
		s.cols[c].addRow(n)
		s.cols[c].clearRow(n)
	}
	return n
}

// drop removes a row. The last row takes its place and is returned; without another row
// the result is -1.
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

// addColumns adds columns to the segment for attributes that are new in the schema.
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
