package classad

// RowID is the number of an ad in a [Table]. The number of a deleted row is reused.
type RowID int32

// Table stores many ads in columns, so that one request can be matched with all of them
// at once. See [Table.Compile]. It has columns only for attributes that some query
// mentions, and for the attributes on which these depend.
//
// Similar rows share a segment, in which each column has one type; UNDEFINED and ERROR
// are masks beside the values. Strings are numbers of a dictionary. An attribute that
// depends on the other side of a match, such as a machine's Start, is stored as a
// template: one expression for all rows of the segment, and columns of its literals. Rows
// for which this is not possible are evaluated one by one.
//
// A Table and its queries are not safe for concurrent use.
type Table struct {
	policy            []string
	policyColumns     []int
	matchAllByDefault bool

	attrs         []schemaColumn
	filledColumns int            // attributes for which all segments have columns
	byName        map[string]int // by name in lower case
	rows          []rowLocation
	free          []RowID

	segments       []*tableSegment
	shapes         map[string]*tableSegment
	reshaped       bool // the keys of shapes are out of date
	rowByRow       *tableSegment
	templates      []*exprTemplate
	strings        *valueDictionary
	otherValues    *valueDictionary
	maxValues      int // the table is rebuilt when the dictionaries have more values
	maxColumnCount int // the table is rebuilt when it has more columns
	epoch          int // rises with each rebuild
	placements     int // rows placed since the last rebuild
	queriesRun     int // queries run since the last rebuild

	vm           vectorVM
	outerScope   *nameScope // scope around stored lists and ads, which detects lookups outside of them
	evaluator    evaluator
	cells        []tableCell // cells of the row that is being placed
	singleRow    tableCell
	key          []byte
	text         []byte
	checkedAttrs rowSet
	presentAttrs rowSet
}

// schemaColumn is one attribute of the table's schema.
type schemaColumn struct {
	name       string
	hash       uint32
	usualClass columnClass // class of the first value, which a column without values gets
}

// rowLocation is the segment and the place of a row.
type rowLocation struct {
	ad      *Ad
	segment *tableSegment
	row     int
}

// TableOptions selects the attributes with the rows' own requirements.
type TableOptions struct {
	// Requirements are the attributes that may hold a row's own condition; the first one
	// that the row has counts. If it is empty, the attribute is Requirements.
	Requirements []string
	// MatchAllByDefault means that rows without such an attribute accept every job.
	// Otherwise they accept none, as in [Match].
	MatchAllByDefault bool
}

// Bounds on what is stored in columns. Rows beyond them are evaluated one by one.
const (
	maxSegments  = 512
	maxTemplates = 512
	fewColumns   = 256
	maxColumns   = 2048
	cellSteps    = 10_000 // nodes evaluated for an attribute that depends only on its own ad
	fewValues    = 1 << 16
	maxOther     = 1 << 16 // bytes of the text of a list or an ad
)

// NewTable returns an empty table.
func NewTable(o TableOptions) *Table {
	t := &Table{policy: o.Requirements, matchAllByDefault: o.MatchAllByDefault, maxColumnCount: fewColumns}
	if len(t.policy) == 0 {
		t.policy = []string{"Requirements"}
	}
	t.rebuild()
	return t
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) - len(t.free) }

// Ad returns the ad of a row; nil if there is no such row.
func (t *Table) Ad(r RowID) *Ad {
	if r < 0 || int(r) >= len(t.rows) {
		return nil
	}
	return t.rows[r].ad
}

// Add puts an ad into the table and returns the number of its row. The ad must not be
// changed while it is in the table.
func (t *Table) Add(ad *Ad) RowID {
	var r RowID
	if n := len(t.free); n > 0 {
		r, t.free = t.free[n-1], t.free[:n-1]
	} else {
		r = RowID(len(t.rows))
		t.rows = append(t.rows, rowLocation{})
	}
	t.rows[r] = rowLocation{ad: ad}
	t.placeRow(r)
	return r
}

// Set replaces the ad of a row.
func (t *Table) Set(r RowID, ad *Ad) {
	p := &t.rows[r]
	if p.ad == nil {
		panic("classad: Set of a row that is not in the table")
	}
	p.ad = ad
	if p.segment.rowByRow || ad.hasReservedNames || !t.updateInPlace(p, 0) {
		t.placeRow(r)
	}
}

// Delete takes a row out of the table.
func (t *Table) Delete(r RowID) {
	if t.rows[r].ad == nil {
		panic("classad: Delete of a row that is not in the table")
	}
	t.removeRow(r)
	t.rows[r] = rowLocation{}
	t.free = append(t.free, r)
}

func (t *Table) removeRow(r RowID) {
	p := &t.rows[r]
	if p.segment == nil {
		return
	}
	if moved := p.segment.drop(p.row); moved >= 0 {
		t.rows[moved].row = p.row
	}
	p.segment = nil
}

// updateInPlace writes the columns of a row, from the first given one on, without moving
// it. ok is false if the row now belongs to another segment.
func (t *Table) updateInPlace(p *rowLocation, first int) (ok bool) {
	s, x := p.segment, &t.singleRow
	for c := first; c < len(s.cols); c++ {
		t.readCell(x, c, p.ad, &s.cols[c])
		if x.class != classNone && x.class != classExpr && t.attrs[c].usualClass == classNone {
			t.firstValue(c, x.class)
		}
		if !s.cols[c].accepts(x) || s.checkedAttrs.has(c) && x.present != s.presentAttrs.has(c) {
			return false
		}
		s.cols[c].setCell(t, p.row, x)
	}
	return true
}

// placeRow finds the segment of a row and adds the row to it.
func (t *Table) placeRow(r RowID) {
	t.removeRow(r)
	t.placements++
	p := &t.rows[r]
	inColumns := t.readAd(p.ad)
	for t.filledColumns < len(t.attrs) { // a new expression has added attributes to the schema
		t.addNewColumns()
		inColumns = t.readAd(p.ad)
	}
	p.segment = t.rowByRow
	if inColumns {
		p.segment = t.segment()
	}
	p.row = p.segment.add(r)
	for c := range p.segment.cols {
		p.segment.cols[c].setCell(t, p.row, &t.cells[c])
	}
}

// readAd reads an ad into t.cells; ok is false if it does not fit into columns.
func (t *Table) readAd(ad *Ad) (ok bool) {
	if ad.hasReservedNames {
		return false
	}
	for c := 0; c < len(t.attrs); c++ { // the schema may grow during the loop
		if c == len(t.cells) {
			t.cells = append(t.cells, tableCell{})
		}
		x := &t.cells[c]
		t.readCell(x, c, ad, nil)
		if x.class == classExpr && x.template == nil {
			return false
		}
		if x.class != classNone && x.class != classExpr && t.attrs[c].usualClass == classNone {
			t.firstValue(c, x.class)
		}
	}
	return true
}
