package dag

import (
	"cmp"
	"fmt"
	"slices"
)

// Diagnostic is a mistake in a DAG file, or what may be one.
type Diagnostic struct {
	IsWarning bool
	IsMissing bool // a file is missing or cannot be read
	File      string
	Line      int    // 0: the file as a whole
	Column    int    // in bytes, from 1
	Width     int    // bytes that are wrong
	Source    string // the line
	Command   string // as in "PARENT"; empty where there is none
	Summary   string
	Detail    string // cause and remedy
}

// String is the diagnostic on one line.
func (d Diagnostic) String() string {
	at, severity := d.File, "error"
	if d.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
	}
	if d.IsWarning {
		severity = "warning"
	}
	return fmt.Sprintf("%s: %s: %s: %s", at, severity, d.Summary, d.Detail)
}

// Diagnostics are those of some files, in the order of the files and lines.
type Diagnostics struct {
	List    []Diagnostic
	Errors  int // with those beyond MaxDiagnostics, which List lacks
	Missing int // those of Errors that are about missing files
	order   []diagnosticOrder
}

// diagnosticOrder is what diagnostics are sorted by.
type diagnosticOrder struct{ file, index int }

// MaxDiagnostics bounds the diagnostics of List.
const MaxDiagnostics = 1000

// HasErrors reports whether one of the diagnostics is an error.
func (d *Diagnostics) HasErrors() bool { return d.Errors > 0 }

// add adds a diagnostic of a file. Errors go before warnings where there is no room for
// all.
func (d *Diagnostics) add(file int, one Diagnostic) {
	if !one.IsWarning {
		if d.Errors++; one.IsMissing {
			d.Missing++
		}
	}
	if len(d.List) >= MaxDiagnostics {
		return
	}
	d.order = append(d.order, diagnosticOrder{file, len(d.List)})
	d.List = append(d.List, one)
}

// sort brings the diagnostics into the order of the files and lines.
func (d *Diagnostics) sort() {
	slices.SortStableFunc(d.order, func(a, b diagnosticOrder) int {
		x, y := &d.List[a.index], &d.List[b.index]
		return cmp.Or(a.file-b.file, x.Line-y.Line, x.Column-y.Column)
	})
	sorted := make([]Diagnostic, len(d.List))
	for i, o := range d.order {
		sorted[i] = d.List[o.index]
	}
	d.List, d.order = sorted, nil
}

// place is a line of a file.
type place struct {
	file uint16
	line uint32
}
