package jobspec

// ItemTable has the items of a job, by column: names, and a value of each name for each
// row. It takes the place of for_each where the items do not come from the job file.
type ItemTable struct {
	Names   []string   // identifiers, which differ in more than case
	Columns [][]string // by name: a value for each row
	Rows    int
	// the rows are those of so many jobs, which have one ad; 0: of one job. Rows is a
	// multiple of it
	Jobs int
	// names that have a value only when the job begins: texts refer to them as to columns
	Deferred []string
	Label    func(job int) string // a name of one of Jobs for messages, as in "node A"
}

// Column returns the values of a name. The list must not be changed.
func (t *ItemTable) Column(name string) ([]string, bool) {
	for i, n := range t.Names {
		if n == name {
			return t.Columns[i], true
		}
	}
	return nil, false
}

// Add adds a column, which has a value for each row.
func (t *ItemTable) Add(name string, values []string) {
	t.Names, t.Columns = append(t.Names, name), append(t.Columns, values)
}

// Slice returns the rows from low to high-1. It shares the values with t.
func (t *ItemTable) Slice(low, high int) *ItemTable {
	part := &ItemTable{Names: t.Names, Columns: make([][]string, len(t.Columns)), Rows: high - low,
		Deferred: t.Deferred}
	for i, c := range t.Columns {
		part.Columns[i] = c[low:high]
	}
	return part
}
