package classad

// segment holds the rows of a table whose columns are of the same classes and whose open expressions are the same: the rows that one
// compiled program can look at side by side.
type segment struct {
	rows   []Row    // by place
	cols   []column // by attribute of the table's schema
	tells  bitmap   // attributes of which all its rows have, or have not, one: what a name means in their expressions depends on it
	there  bitmap   // of these, the ones that its rows have
	loose  bool     // its rows do not fit into columns and are evaluated one by one
	shaped int      // rises when a column without values becomes one of a class
}

// add makes room for a row and says where. Its cells have to be put.
func (s *segment) add(r Row) int {
	n := len(s.rows)
	s.rows = append(s.rows, r)
	for c := range s.cols {
		s.cols[c].grow(n)
		s.cols[c].clear(n)
	}
	return n
}

// drop takes a row away; the last one, which it returns, takes its place. Without another row it returns -1.
func (s *segment) drop(i int) (moved Row) {
	last := len(s.rows) - 1
	for c := range s.cols {
		s.cols[c].drop(i, last)
	}
	moved = s.rows[last]
	s.rows[i] = moved
	s.rows = s.rows[:last]
	if i == last {
		return -1
	}
	return moved
}

// widen gives the segment columns for attributes that the schema has got since.
func (s *segment) widen(attrs []attribute) {
	for len(s.tells) < len(attrs)/64+1 {
		s.tells, s.there = append(s.tells, 0), append(s.there, 0)
	}
	for c := len(s.cols); c < len(attrs); c++ {
		s.cols = append(s.cols, column{class: attrs[c].usual})
		col := &s.cols[c]
		col.grow(len(s.rows))
		for i := range s.rows {
			col.clear(i)
		}
	}
}
