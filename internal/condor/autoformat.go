package condor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
)

// printedColumn is one value of -af or -format.
type printedColumn struct {
	source string
	expr   classad.Expr
	format string // of -format: as of printf; empty: of -af
}

// AutoFormat prints chosen attributes of ads, as -autoformat and -format ask for.
type AutoFormat struct {
	columns  []printedColumn
	env      *classad.EvalEnv
	isRaw    bool   // expressions as they are written
	isQuoted bool   // texts have quotes
	labels   bool   // "Name = " before each value
	headings bool   // a line of names first, and columns of equal width
	ids      bool   // CLUSTER.PROC first
	before   string // each value but the first
	after    string // each value but the last
	end      string // of a line
	isPrintf bool   // no line ends but those of the formats
}

// NewAutoFormat reads the letters behind "-af:" and the attributes after it.
func NewAutoFormat(letters string, attributes []string, env *classad.EvalEnv) (*AutoFormat, error) {
	f := &AutoFormat{env: env, before: " ", end: "\n"}
	for _, letter := range letters {
		switch letter {
		case 'r', 'o':
			f.isRaw = true
		case 'V':
			f.isQuoted = true
		case 'l':
			f.labels = true
		case 'h':
			f.headings = true
		case 'j':
			f.ids = true
		case ',':
			f.after = ","
		case 't':
			f.before = "\t"
		case 'n':
			f.before = "\n"
		case 'g':
			f.end = "\n\n"
		default:
			return nil, fmt.Errorf("-autoformat:%s: %q is none of its letters: j r o l h V t n g and the comma",
				letters, string(letter))
		}
	}
	if len(attributes) == 0 {
		return nil, fmt.Errorf("-autoformat requires at least one attribute parameter")
	}
	for _, text := range attributes {
		if err := f.addColumn(text, ""); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// NewPrintfFormat starts an empty row for -format. AddFormat fills it.
func NewPrintfFormat(env *classad.EvalEnv) *AutoFormat { return &AutoFormat{env: env, isPrintf: true} }

// AddFormat adds a pair of -format.
func (f *AutoFormat) AddFormat(format, attribute string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	return f.addColumn(attribute, format)
}

func (f *AutoFormat) addColumn(source, format string) error {
	e, err := classad.ParseExpr(source)
	if err != nil {
		return fmt.Errorf("%s is no expression: %w", document.PrintableText(source), err)
	}
	f.columns = append(f.columns, printedColumn{source, e, format})
	return nil
}

// Text returns the lines for all ads.
func (f *AutoFormat) Text(ads []*classad.Ad) string {
	if f.headings {
		return f.alignedText(ads)
	}
	var b strings.Builder
	for _, ad := range ads {
		f.writeRow(&b, f.values(ad))
	}
	return b.String()
}

// values returns the row of an ad.
func (f *AutoFormat) values(ad *classad.Ad) []string {
	var row []string
	if f.ids {
		cluster, _ := ad.Int("ClusterId")
		proc, _ := ad.Int("ProcId")
		id := fmt.Sprintf("%d.%d", cluster, proc)
		if f.labels {
			id = "ID = " + id
		}
		row = append(row, id)
	}
	for _, c := range f.columns {
		if f.isPrintf {
			row = append(row, formatValue(c.format, classad.Eval(c.expr, ad, nil, f.env)))
			continue
		}
		text := f.value(ad, c)
		if f.labels && !f.headings {
			text = document.PrintableText(c.source) + " = " + text
		}
		row = append(row, text)
	}
	return row
}

// value returns one value. Control characters are escaped, so that no value begins a
// line.
func (f *AutoFormat) value(ad *classad.Ad, c printedColumn) string {
	if f.isRaw {
		if e, ok := ad.Lookup(c.source); ok {
			if v, literal := e.Literal(); literal {
				return document.PrintableText(valueText(v))
			}
			return document.PrintableText(e.String())
		}
	}
	v := classad.Eval(c.expr, ad, nil, f.env)
	if text, ok := v.Str(); ok && !f.isQuoted && !f.isRaw {
		return document.PrintableText(text)
	}
	return document.PrintableText(valueText(v))
}

// valueText writes a value as HTCondor does: a real number is short, and has a dot.
func valueText(v classad.Value) string {
	f, ok := v.Real()
	if !ok || v.Kind() != classad.Real {
		return v.String()
	}
	text := strconv.FormatFloat(f, 'G', -1, 64)
	if strings.Trim(text, "-0123456789") == "" {
		text += ".0"
	}
	return text
}

func (f *AutoFormat) writeRow(b *strings.Builder, row []string) {
	for i, text := range row {
		if i > 0 {
			b.WriteString(f.before)
		}
		b.WriteString(text)
		if i+1 < len(row) {
			b.WriteString(f.after)
		}
	}
	b.WriteString(f.end)
}

// alignedText returns the lines with a heading. Columns are as wide as what is in them.
func (f *AutoFormat) alignedText(ads []*classad.Ad) string {
	var head []string
	if f.ids {
		head = append(head, " ID")
	}
	for _, c := range f.columns {
		head = append(head, document.PrintableText(c.source))
	}
	rows := [][]string{head}
	for _, ad := range ads {
		rows = append(rows, f.values(ad))
	}
	widths := make([]int, len(head))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len(text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i := range row[:len(row)-1] {
			row[i] = fmt.Sprintf("%-*s", widths[i], row[i])
		}
		f.writeRow(&b, row)
	}
	return b.String()
}
