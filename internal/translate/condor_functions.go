package translate

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// macroFunction is a function of the macros of submit descriptions: $NAME(arguments).
type macroFunction struct {
	// arguments of which a macro's name stands for its value, from the first one on
	named int
	// differs says that each use has another value
	differs bool
	apply   func(m *macroCall) (string, error)
}

// macroCall is a use of a function.
type macroCall struct {
	letters   string   // of $F
	arguments []string // at least one
	random    func(n uint64) uint64
}

// argument returns an argument, or "".
func (m *macroCall) argument(i int) string {
	if i < len(m.arguments) {
		return m.arguments[i]
	}
	return ""
}

// number returns an argument as a whole number.
func (m *macroCall) number(i int) (int64, error) {
	v, err := evaluateText(m.argument(i))
	if err != nil {
		return 0, err
	}
	n, ok := v.Int()
	if !ok {
		return 0, fmt.Errorf("%q is no whole number", m.argument(i))
	}
	return n, nil
}

// macroFunctions returns the functions by name.
func macroFunctions() map[string]macroFunction {
	return map[string]macroFunction{
		"F":              {named: 1, apply: filenameParts},
		"BASENAME":       {named: 1, apply: baseOf},
		"DIRNAME":        {named: 1, apply: dirnameText},
		"SUBSTR":         {named: 3, apply: substring},
		"INT":            {named: 1, apply: integerText},
		"REAL":           {named: 1, apply: realText},
		"STRING":         {named: 1, apply: stringText},
		"EVAL":           {named: 1, apply: stringText},
		"CHOICE":         {named: 2, apply: chosenItem},
		"RANDOM_CHOICE":  {named: 1, differs: true, apply: randomItem},
		"RANDOM_INTEGER": {named: 3, differs: true, apply: randomInteger},
	}
}

var filenameFunction = lazyregexp.New(`^F[fpduwnxbqa]*$`)

// functionNamed returns the function of a name, and the letters of $F.
func functionNamed(name string) (fn macroFunction, letters string, ok bool) {
	if filenameFunction().MatchString(name) {
		return macroFunctions()["F"], name[1:], true
	}
	fn, ok = macroFunctions()[strings.ToUpper(name)]
	return fn, "", ok && !strings.EqualFold(name, "F")
}

func directoryOf(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// filenameParts is $F with its letters. They select p the path, d the last directory, n
// the name and x the extension; b leaves out the separators at the ends, q and a add
// quotes, and w writes \ for /.
func filenameParts(m *macroCall) (string, error) {
	full := strings.Trim(m.argument(0), `"'`)
	dir, base := directoryOf(full), full[strings.LastIndexByte(full, '/')+1:]
	ext := path.Ext(base)
	has := func(letter string) bool { return strings.Contains(m.letters, letter) }
	out := full
	if strings.ContainsAny(m.letters, "pdnx") {
		out = ""
		switch {
		case has("p"):
			out = dir
		case has("d") && dir != "":
			out = dir[strings.LastIndexByte(dir[:len(dir)-1], '/')+1:]
		}
		if has("b") && !has("n") && !has("x") {
			out = strings.TrimSuffix(out, "/")
		}
		if has("n") {
			out += strings.TrimSuffix(base, ext)
		}
		if has("x") && has("b") && !has("n") {
			ext = strings.TrimPrefix(ext, ".")
		}
		if has("x") {
			out += ext
		}
	}
	switch {
	case has("w"):
		out = strings.ReplaceAll(out, "/", `\`)
	case has("u"):
		out = strings.ReplaceAll(out, `\`, "/")
	}
	switch {
	case has("a"):
		out = "'" + out + "'"
	case has("q"):
		out = `"` + out + `"`
	}
	return out, nil
}

func dirnameText(m *macroCall) (string, error) { return directoryOf(m.argument(0)), nil }

func baseOf(m *macroCall) (string, error) {
	name := m.argument(0)
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], m.argument(1)), nil
}

// substring is $SUBSTR(name, start, length). Numbers below 0 count from the end.
func substring(m *macroCall) (string, error) {
	s := m.argument(0)
	size := int64(len(s))
	start, err := m.number(1)
	if err != nil {
		return "", err
	}
	if start < 0 {
		start += size
	}
	start = max(0, min(start, size))
	if len(m.arguments) < 3 {
		return s[start:], nil
	}
	length, err := m.number(2)
	if err != nil {
		return "", err
	}
	end := size
	if length < 0 {
		end += max(length, -size)
	} else if length < size-start {
		end = start + length
	}
	return s[start:max(start, end)], nil
}

// evaluateText evaluates a text as a ClassAd expression.
func evaluateText(text string) (classad.Value, error) {
	e, err := classad.ParseExpr(strings.TrimSpace(text))
	if err != nil {
		return classad.Value{}, fmt.Errorf("%q is no expression: %w", shownLine(text), err)
	}
	return classad.Eval(e, classad.New(), nil, nil), nil
}

var numberFormat = lazyregexp.New(`^([^%]*)%([-+ 0#]*[0-9]{0,3}(?:\.[0-9]{0,3})?)[hlLqjzt]*([diuoxXeEfFgG])([^%]*)$`)

// formatNumber formats a number as printf of C does.
func formatNumber(format string, f float64, isWhole bool) (string, error) {
	m := numberFormat().FindStringSubmatch(strings.TrimSpace(format))
	switch {
	case m == nil:
		return "", fmt.Errorf("%q is no format of one number, such as %%05d", shownLine(format))
	case strings.Contains("diu", m[3]):
		return m[1] + fmt.Sprintf("%"+m[2]+"d", int64(f)) + m[4], nil
	case strings.Contains("oxX", m[3]):
		return m[1] + fmt.Sprintf("%"+m[2]+m[3], uint64(int64(f))) + m[4], nil
	case isWhole:
		return "", fmt.Errorf("%q is a format of numbers with a fraction", shownLine(format))
	}
	return m[1] + fmt.Sprintf("%"+m[2]+m[3], f) + m[4], nil
}

func integerText(m *macroCall) (string, error) {
	f, err := numberOf(m)
	if err != nil {
		return "", err
	}
	if f = math.Trunc(f); math.Abs(f) > 1<<62 {
		return "", fmt.Errorf("%v is out of range", f)
	}
	if len(m.arguments) > 1 {
		return formatNumber(m.arguments[1], f, true)
	}
	return strconv.FormatInt(int64(f), 10), nil
}

func realText(m *macroCall) (string, error) {
	f, err := numberOf(m)
	if err != nil {
		return "", err
	}
	if len(m.arguments) > 1 {
		return formatNumber(m.arguments[1], f, false)
	}
	return formatNumber("%.16g", f, false)
}

func numberOf(m *macroCall) (float64, error) {
	v, err := evaluateText(m.argument(0))
	if err != nil {
		return 0, err
	}
	f, ok := v.Number()
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is no number", shownLine(m.argument(0)))
	}
	return f, nil
}

// stringText is $STRING: the value of an expression, or the text where it has none.
func stringText(m *macroCall) (string, error) {
	v, err := evaluateText(m.argument(0))
	s, isText := "", false
	if err == nil {
		s, isText = v.Str()
	}
	if !isText {
		s = m.argument(0)
	}
	if format := strings.TrimSpace(m.argument(1)); format != "" {
		before, after, _ := strings.Cut(format, "%s")
		return before + s + after, nil
	}
	return s, nil
}

// choices are the items behind the first n arguments: the rest of them, or a list.
func (m *macroCall) choices(n int) []string {
	list := m.arguments[min(n, len(m.arguments)):]
	if len(list) == 1 {
		list = splitCommas(list[0])
	}
	return list
}

func chosenItem(m *macroCall) (string, error) {
	i, err := m.number(0)
	if err != nil {
		return "", err
	}
	list := m.choices(1)
	if i < 0 || i >= int64(len(list)) {
		return "", fmt.Errorf("there is no item %d among %d, which are counted from 0", i, len(list))
	}
	return list[i], nil
}

// randomBelow is a number from 0 to n-1, of the generator splitmix64.
func (q *condorJob) randomBelow(n uint64) uint64 {
	q.random += 0x9e3779b97f4a7c15
	z := q.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}

func randomItem(m *macroCall) (string, error) {
	list := m.choices(0)
	if len(list) == 0 {
		return "", fmt.Errorf("there are no items")
	}
	return list[m.random(uint64(len(list)))], nil
}

func randomInteger(m *macroCall) (string, error) {
	low, err := m.number(0)
	if err != nil {
		return "", err
	}
	high, err := m.number(1)
	if err != nil {
		return "", err
	}
	step := int64(1)
	if len(m.arguments) > 2 {
		if step, err = m.number(2); err != nil {
			return "", err
		}
	}
	if high < low || step < 1 || high-low < 0 {
		return "", fmt.Errorf("there is no number from %d to %d in steps of %d", low, high, step)
	}
	return strconv.FormatInt(low+step*int64(m.random(uint64((high-low)/step)+1)), 10), nil
}
