package classad

// Row is the number of an ad in a [Table]. The number of a row that was deleted is given out again.
type Row int32

// Table holds many ads in columns, so that one request can be matched with all of them at once: see [Table.Compile]. It keeps columns
// only for attributes that some query mentions, and the attributes that these lead to.
//
// Rows that are alike share a segment, in which each column has one type; UNDEFINED and ERROR are kept in masks beside it. Strings are
// numbers of a dictionary. An attribute whose expression needs the other side of a match, such as a machine's Start, is kept as a
// template: the expression, which the segment's rows share, and columns of its literals. What fits none of this is evaluated one by one.
//
// A Table and its queries are not safe for concurrent use.
type Table struct {
	policy        []string
	policyColumns []int
	lax           bool

	attrs  []attribute
	filled int            // attributes that all segments have columns for
	byName map[string]int // in lower case
	rows   []place
	free   []Row

	segments  []*segment
	shapes    map[string]*segment
	reshaped  bool // shapes are out of date
	loose     *segment
	templates []*template
	texts     *dictionary
	others    *dictionary
	bound     int // values in the dictionaries above which the table is built anew
	columns   int // columns above which it is
	epoch     int // rises when it is
	changes   int // rows that were placed since
	asked     int // queries that were run since

	m       machine
	nowhere *frame // around lists and ads that are kept as values: looking further than into them is noticed
	probe   evaluator
	cells   []cell // of the row that is being placed
	one     cell
	key     []byte
	text    []byte
	tells   bitmap
	there   bitmap
}

// attribute is one column of the schema.
type attribute struct {
	name  string
	hash  uint32
	usual class // of the first value that was seen: what a column is in which no row has any
}

// place is where a row is kept.
type place struct {
	ad  *Ad
	seg *segment
	at  int
}

// TableOptions say how the rows of a [Table] speak for themselves.
type TableOptions struct {
	// Requirements are the attributes that may hold a row's own condition on its partner, of which the first that the row has counts.
	// Without any it is Requirements.
	Requirements []string
	// Lax rows take everybody if they have no such attribute. Otherwise they match nobody, as in [Match].
	Lax bool
}

// Bounds on what is kept in columns. What is beyond them is evaluated one by one.
const (
	maxSegments  = 512
	maxTemplates = 512
	fewColumns   = 256
	maxColumns   = 2048
	cellSteps    = 10_000 // nodes evaluated to find the value of an attribute that needs nothing but its own ad
	fewValues    = 1 << 16
	maxOther     = 1 << 16 // bytes of the text of a list or an ad
)

// NewTable is an empty table.
func NewTable(o TableOptions) *Table {
	t := &Table{policy: o.Requirements, lax: o.Lax, columns: fewColumns}
	if len(t.policy) == 0 {
		t.policy = []string{"Requirements"}
	}
	t.rebuild()
	return t
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) - len(t.free) }

// Ad is the ad of a row; nil if there is no such row.
func (t *Table) Ad(r Row) *Ad {
	if r < 0 || int(r) >= len(t.rows) {
		return nil
	}
	return t.rows[r].ad
}

// Add puts an ad into the table and returns the number of its row. The ad must not be changed as long as it is there.
func (t *Table) Add(ad *Ad) Row {
	var r Row
	if n := len(t.free); n > 0 {
		r, t.free = t.free[n-1], t.free[:n-1]
	} else {
		r = Row(len(t.rows))
		t.rows = append(t.rows, place{})
	}
	t.rows[r] = place{ad: ad}
	t.place(r)
	return r
}

// Set replaces the ad of a row.
func (t *Table) Set(r Row, ad *Ad) {
	p := &t.rows[r]
	if p.ad == nil {
		panic("classad: Set of a row that is not in the table")
	}
	p.ad = ad
	if p.seg.loose || ad.hides || !t.refresh(p, 0) {
		t.place(r)
	}
}

// Delete takes a row out of the table.
func (t *Table) Delete(r Row) {
	if t.rows[r].ad == nil {
		panic("classad: Delete of a row that is not in the table")
	}
	t.unplace(r)
	t.rows[r] = place{}
	t.free = append(t.free, r)
}

func (t *Table) unplace(r Row) {
	p := &t.rows[r]
	if p.seg == nil {
		return
	}
	if moved := p.seg.drop(p.at); moved >= 0 {
		t.rows[moved].at = p.at
	}
	p.seg = nil
}

// refresh writes the columns of a row from the first on where it stands; ok is false if it belongs elsewhere now.
func (t *Table) refresh(p *place, first int) (ok bool) {
	s, x := p.seg, &t.one
	for c := first; c < len(s.cols); c++ {
		t.cell(x, c, p.ad, &s.cols[c])
		if x.class != ofNothing && x.class != ofExpr && t.attrs[c].usual == ofNothing {
			t.firstValue(c, x.class)
		}
		if !s.cols[c].takes(x) || s.tells.has(c) && x.there != s.there.has(c) {
			return false
		}
		s.cols[c].put(t, p.at, x)
	}
	return true
}

// place finds the segment of a row and puts it there.
func (t *Table) place(r Row) {
	t.unplace(r)
	t.changes++
	p := &t.rows[r]
	inColumns := t.readCells(p.ad)
	for t.filled < len(t.attrs) { // a new expression has led to new attributes
		t.fill()
		inColumns = t.readCells(p.ad)
	}
	p.seg = t.loose
	if inColumns {
		p.seg = t.segment()
	}
	p.at = p.seg.add(r)
	for c := range p.seg.cols {
		p.seg.cols[c].put(t, p.at, &t.cells[c])
	}
}

// readCells reads an ad into t.cells; ok is false if it does not fit into columns.
func (t *Table) readCells(ad *Ad) (ok bool) {
	if ad.hides {
		return false
	}
	for c := 0; c < len(t.attrs); c++ { // the schema may grow on the way
		if c == len(t.cells) {
			t.cells = append(t.cells, cell{})
		}
		x := &t.cells[c]
		t.cell(x, c, ad, nil)
		if x.class == ofExpr && x.form == nil {
			return false
		}
		if x.class != ofNothing && x.class != ofExpr && t.attrs[c].usual == ofNothing {
			t.firstValue(c, x.class)
		}
	}
	return true
}
