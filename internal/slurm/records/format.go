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

// ParseFormat reads a format of squeue -o, such as "%.18i %R". It returns the letters
// that stand for no field, too.
func ParseFormat(text string) (f Format, unknown []string) {
	all := fields()
	prefix, rest, _ := strings.Cut(text, "%")
	if f = append(f, Column{Suffix: prefix}); !strings.Contains(text, "%") {
		return f, nil
	}
	for part := range strings.SplitSeq(rest, "%") {
		c, size := Column{}, 0
		if strings.HasPrefix(part, ".") {
			c.Right, part = true, part[1:]
		}
		for size < len(part) && part[size] >= '0' && part[size] <= '9' {
			size++
		}
		n, err := strconv.Atoi("0" + part[:size])
		if c.Width = min(n, maxColumnWidth); err != nil {
			c.Width = maxColumnWidth
		}
		if part = part[size:]; part == "" {
			unknown = append(unknown, part)
			continue
		}
		i := slices.IndexFunc(all, func(g Field) bool { return g.Letter == part[0] })
		if i < 0 {
			unknown = append(unknown, part[:1])
			f = append(f, Column{Suffix: part[1:]})
			continue
		}
		c.Field, c.Suffix = &all[i], part[1:]
		f = append(f, c)
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
			digits := 0
			for digits < len(size) && size[digits] >= '0' && size[digits] <= '9' {
				digits++
			}
			n, err := strconv.Atoi("0" + size[:digits])
			if c.Width = min(n, maxColumnWidth); err != nil {
				c.Width = maxColumnWidth
			}
			c.Suffix = size[digits:]
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
	return f.line(func(g *Field) string { return g.Title })
}

// Line is the line of a job.
func (f Format) Line(j *Job, c *Clock) string {
	return f.line(func(g *Field) string { return g.Value(j, c) })
}

func (f Format) line(value func(*Field) string) string {
	var b strings.Builder
	for _, c := range f {
		if c.Field != nil {
			b.WriteString(c.fit(value(c.Field)))
		}
		b.WriteString(c.Suffix)
	}
	return b.String()
}

// fit cuts or fills a value to the width of its column.
func (c *Column) fit(text string) string {
	n := utf8.RuneCountInString(text)
	switch {
	case c.Width == 0 || n == c.Width:
		return text
	case n > c.Width:
		return string([]rune(text)[:c.Width])
	case c.Right:
		return strings.Repeat(" ", c.Width-n) + text
	}
	return text + strings.Repeat(" ", c.Width-n)
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
