package records

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DefaultFormat is the format of squeue.
const DefaultFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"

// LongFormat is the format of squeue --long.
const LongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"

// StartFormat is the format of squeue --start.
const StartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"

// maxColumnWidth bounds what a format can ask for.
const maxColumnWidth = 4096

// Column is a part of a format: a field, or text that stands for itself.
type Column struct {
	Field  *Field // nil: only text
	Width  int    // 0: as wide as the value
	Right  bool   // aligned to the right
	Suffix string // text behind it
}

// Format is what a line of squeue is made of.
type Format []Column

// FormatPart is a letter of a format with its width, and text that follows it.
type FormatPart struct {
	Letter byte
	Width  int  // 0: as wide as the value
	Right  bool // aligned to the right
	Suffix string
	Raw    string // as it was written, behind the percent sign
}

// SplitFormat takes a format such as "%.18i %R" apart. Prefix is text before its first
// letter.
func SplitFormat(text string) (prefix string, parts []FormatPart) {
	prefix, rest, found := strings.Cut(text, "%")
	if !found {
		return prefix, nil
	}
	for part := range strings.SplitSeq(rest, "%") {
		p := FormatPart{Raw: part}
		if part = strings.TrimPrefix(part, "#"); strings.HasPrefix(part, ".") {
			p.Right, part = true, part[1:]
		}
		if p.Width, part = cutWidth(part); part != "" {
			p.Letter, p.Suffix = part[0], part[1:]
		}
		parts = append(parts, p)
	}
	return prefix, parts
}

// cutWidth reads the width at the begin of a text.
func cutWidth(text string) (width int, rest string) {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	width, err := strconv.Atoi("0" + text[:digits])
	if err != nil {
		width = maxColumnWidth
	}
	return min(width, maxColumnWidth), text[digits:]
}

// ParseFormat reads a format of squeue -o, such as "%.18i %R". It returns the letters
// that stand for no field, too.
func ParseFormat(text string) (f Format, unknown []string) {
	all := fields()
	prefix, parts := SplitFormat(text)
	f = append(f, Column{Suffix: prefix})
	for _, p := range parts {
		i := slices.IndexFunc(all, func(g Field) bool { return g.Letter == p.Letter && p.Letter != 0 })
		if i < 0 {
			if p.Raw == "" { // of %%
				continue
			}
			unknown = append(unknown, strings.Trim(string(rune(p.Letter)), "\x00"))
			f = append(f, Column{Suffix: "%" + p.Raw})
			continue
		}
		f = append(f, Column{Field: &all[i], Width: p.Width, Right: p.Right, Suffix: p.Suffix})
	}
	return f, unknown
}

// ParseNames reads a list of squeue -O, such as "JobID:10,State,Reason:|".
func ParseNames(text string) (Format, error) {
	var f Format
	all := fields()
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		name, size, sized := strings.Cut(item, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		i := slices.IndexFunc(all, func(g Field) bool { return slices.Contains(strings.Fields(g.Names), name) })
		if i < 0 {
			return nil, fmt.Errorf("Invalid job format specification: %s", visible(item))
		}
		c := Column{Field: &all[i], Width: 20}
		if sized {
			if strings.HasPrefix(size, ".") {
				c.Right, size = true, size[1:]
			}
			c.Width, c.Suffix = cutWidth(size)
		}
		f = append(f, c)
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("Format long option list is empty")
	}
	return f, nil
}

// Titles is the line of titles.
func (f Format) Titles() string {
	return f.line((*Column).fit, func(g *Field) string { return g.Title })
}

// Line is the line of a job.
func (f Format) Line(j *Job, c *Clock) string {
	return f.line((*Column).fitValue, func(g *Field) string { return g.Value(j, c) })
}

func (f Format) line(fit func(*Column, string) string, value func(*Field) string) string {
	var b strings.Builder
	for _, c := range f {
		if c.Field != nil {
			b.WriteString(fit(&c, value(c.Field)))
		}
		b.WriteString(c.Suffix)
	}
	return b.String()
}

// fitValue fits a value of a job: amounts of time are never cut.
func (c *Column) fitValue(text string) string {
	if c.Field.isTime() && utf8.RuneCountInString(text) > c.Width {
		return text
	}
	return c.fit(text)
}

func (c *Column) fit(text string) string {
	p := FormatPart{Width: c.Width, Right: c.Right}
	return p.Fit(text)
}

// Fit cuts or fills a value to the width of its column.
func (p *FormatPart) Fit(text string) string {
	n := utf8.RuneCountInString(text)
	switch {
	case p.Width == 0 || n == p.Width:
		return text
	case n > p.Width:
		return string([]rune(text)[:p.Width])
	case p.Right:
		return strings.Repeat(" ", p.Width-n) + text
	}
	return text + strings.Repeat(" ", p.Width-n)
}

// isTime reports whether the values are amounts of time, which are never cut.
func (f *Field) isTime() bool { return f.Letter == 'M' || f.Letter == 'L' || f.Letter == 'l' }

// FieldNames are the names of -O in the order of the alphabet.
func FieldNames() (names []string) {
	for _, f := range fields() {
		names = append(names, strings.Fields(f.Names)[0])
	}
	slices.Sort(names)
	return names
}

// Sort orders jobs by the letters of -S, each with + or - before it.
func Sort(jobs []*Job, order string, c *Clock) error {
	type key struct {
		field *Field
		down  bool
	}
	var keys []key
	all := fields()
	for i := 0; i < len(order); i++ {
		down := false
		switch order[i] {
		case ',', ' ':
			continue
		case '-', '+':
			down = order[i] == '-'
			if i++; i == len(order) {
				return fmt.Errorf("Invalid sort specification: %s", visible(order))
			}
		}
		n := slices.IndexFunc(all, func(g Field) bool { return g.Letter == order[i] })
		if n < 0 {
			return fmt.Errorf("Invalid sort specification: %s", visible(order[i:i+1]))
		}
		keys = append(keys, key{&all[n], down})
	}
	slices.SortStableFunc(jobs, func(a, b *Job) int {
		for _, k := range keys {
			n := compareField(k.field, a, b, c)
			if k.down {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
	return nil
}

// compareField compares two jobs by a field: states in their order, numbers as such.
func compareField(f *Field, a, b *Job, c *Clock) int {
	switch f.Letter {
	case 't', 'T':
		return stateRank(a.State) - stateRank(b.State)
	case 'M':
		return int(min(max(a.RunTime(c.Now)-b.RunTime(c.Now), -1), 1))
	case 'l', 'L':
		return int(min(max(a.Limit()-b.Limit(), -1), 1))
	case 'i', 'A', 'F':
		if a.Number != b.Number {
			return int(min(max(int64(a.Number)-int64(b.Number), -1), 1))
		}
		return int(a.GetIndex()) - int(b.GetIndex())
	}
	x, y := f.value(a, c), f.value(b, c)
	m, err := strconv.ParseInt(x, 10, 64)
	n, err2 := strconv.ParseInt(y, 10, 64)
	if err == nil && err2 == nil {
		return int(min(max(m-n, -1), 1))
	}
	return strings.Compare(x, y)
}
