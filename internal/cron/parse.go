package cron

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schedule is a cron expression in a zone.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64 // bit n: the value n
	anyDay, anyWeekday                     bool   // the field begins with *
	everyHour                              bool   // the hour field begins with *
	zone                                   *time.Location
}

// SyntaxError is what is wrong with an expression.
type SyntaxError struct {
	Start, End int // the bytes of the expression that are wrong
	Cause      string
	Cure       string
}

func (e *SyntaxError) Error() string { return e.Cause + ". " + e.Cure }

// field describes one of the five.
type field struct {
	name        string
	first, last int
	names       []string // of first and those behind it
}

var (
	monthNames = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	dayNames   = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	fields     = [...]field{{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil},
		{"month", 1, 12, monthNames}, {"day of the week", 0, 7, dayNames}}
	shortForms = map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
		"@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}
)

// maxExpression bounds an expression, in bytes.
const maxExpression = 256

// fiveFields is the cure for what is no cron expression at all.
const fiveFields = "Write minute, hour, day of the month, month and day of the week, as in \"30 3 * * mon-fri\", or " +
	"@hourly, @daily, @weekly, @monthly or @yearly."

// Parse reads an expression. The seed chooses the values of H. An error is a
// *SyntaxError.
func Parse(text string, zone *time.Location, seed string) (*Schedule, error) {
	if len(text) > maxExpression {
		return nil, &SyntaxError{0, len(text), fmt.Sprintf("the expression has %d bytes, and %d is the most", len(text),
			maxExpression), fiveFields}
	}
	s := &Schedule{zone: zone}
	if strings.HasPrefix(strings.TrimSpace(text), "@") {
		full, ok := shortForms[strings.ToLower(strings.TrimSpace(text))]
		if !ok {
			return nil, &SyntaxError{0, len(text), fmt.Sprintf("there is no short form %q", strings.TrimSpace(text)),
				fiveFields}
		}
		text = full
	}
	words := splitWords(text)
	if len(words) != len(fields) {
		e := &SyntaxError{0, len(text), fmt.Sprintf("a cron expression has 5 fields, and this one has %d", len(words)),
			fiveFields}
		if len(words) > len(fields) {
			e.Start = words[len(fields)].start
			e.Cure = "There are no fields for seconds and years. " + fiveFields
		}
		return nil, e
	}
	to := [...]*uint64{&s.minutes, &s.hours, &s.days, &s.months, &s.weekdays}
	for i, w := range words {
		p := fieldParser{field: &fields[i], seed: seed}
		set, err := p.parseList(w)
		if err != nil {
			return nil, err
		}
		*to[i] = set
	}
	if s.weekdays&(1<<7) != 0 { // 7 is Sunday too
		s.weekdays |= 1
	}
	s.everyHour, s.anyDay, s.anyWeekday = words[1].text[0] == '*', words[2].text[0] == '*', words[4].text[0] == '*'
	if !s.mayFire() {
		return nil, &SyntaxError{words[2].start, words[3].start + len(words[3].text),
			"no such day ever comes: none of these months has one of these days",
			"April, June, September and November have 30 days, and February has 29 at most."}
	}
	return s, nil
}

// mayFire reports whether a day of the schedule ever comes.
func (s *Schedule) mayFire() bool {
	if !s.anyWeekday && !s.anyDay { // every month has all days of the week
		return true
	}
	longest := [...]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for m := 1; m <= 12; m++ {
		if s.months&(1<<m) != 0 && bits.TrailingZeros64(s.days) <= longest[m] {
			return true
		}
	}
	return false
}

// word is a piece of the expression.
type word struct {
	text  string
	start int
}

func splitWords(text string) (words []word) {
	for i := 0; i < len(text); {
		n := strings.IndexAny(text[i:], " \t")
		if n < 0 {
			n = len(text) - i
		}
		if n > 0 {
			words = append(words, word{text[i : i+n], i})
		}
		i += n + 1
	}
	return words
}

// fieldParser reads one field.
type fieldParser struct {
	*field
	seed string
}

func (p *fieldParser) fail(w word, cause, cure string) error {
	return &SyntaxError{w.start, w.start + len(w.text), cause, cure}
}

func (p *fieldParser) rangeHint() string {
	hint := fmt.Sprintf("The %s is from %d to %d", p.name, p.first, p.last)
	if p.names != nil {
		hint += fmt.Sprintf(", or a name from %s to %s", p.names[0], p.names[len(p.names)-1])
	}
	return hint + ", a list 1,2, a range 1-5, a step */5, or H."
}

// parseList reads a field: what commas separate.
func (p *fieldParser) parseList(w word) (set uint64, err error) {
	at := w.start
	for _, part := range strings.Split(w.text, ",") {
		one, err := p.parsePart(word{part, at})
		if err != nil {
			return 0, err
		}
		set |= one
		at += len(part) + 1
	}
	return set, nil
}

// parsePart reads one part of a list: values, and how far apart they are.
func (p *fieldParser) parsePart(w word) (set uint64, err error) {
	if w.text == "" {
		return 0, p.fail(w, fmt.Sprintf("a value of the %s is missing", p.name), p.rangeHint())
	}
	values, stepText, hasStep := strings.Cut(w.text, "/")
	step := 1
	if hasStep {
		at := word{stepText, w.start + len(values) + 1}
		step, err = strconv.Atoi(stepText)
		if err != nil || step < 1 || step > p.last {
			return 0, p.fail(at, fmt.Sprintf("%q is no step", stepText),
				fmt.Sprintf("A step of the %s is from 1 to %d, as in */5.", p.name, p.last))
		}
	}
	first, last, hashed, err := p.parseValues(word{values, w.start}, hasStep)
	if err != nil {
		return 0, err
	}
	if hashed && !hasStep {
		return 1 << (first + p.hash(last-first+1)), nil
	}
	if hashed {
		first += p.hash(min(step, last-first+1))
	}
	for n := first; n <= last; n += step {
		set |= 1 << n
	}
	return set, nil
}

// parseValues reads *, H, H(N-M), N or N-M.
func (p *fieldParser) parseValues(w word, hasStep bool) (first, last int, hashed bool, err error) {
	top := p.last
	if p.last == 7 { // Sunday once
		top = 6
	}
	text := w.text
	switch {
	case text == "*":
		return p.first, top, false, nil
	case text == "H":
		if p.last == 31 { // every month has it
			top = 28
		}
		return p.first, top, true, nil
	case strings.HasPrefix(text, "H(") && strings.HasSuffix(text, ")"):
		hashed, text = true, text[2:len(text)-1]
	}
	low, high, ranged := strings.Cut(text, "-")
	var ok bool
	if first, ok = p.value(low); !ok {
		return 0, 0, false, p.fail(w, fmt.Sprintf("%q is no %s", w.text, p.name), p.rangeHint())
	}
	switch last = first; {
	case ranged:
		if last, ok = p.value(high); !ok {
			return 0, 0, false, p.fail(w, fmt.Sprintf("%q is no %s", high, p.name), p.rangeHint())
		}
		if p.last == 7 && last == 0 && first > 0 { // fri-sun
			last = 7
		}
		if last < first {
			return 0, 0, false, p.fail(w, fmt.Sprintf("the range %s ends before it begins", text),
				fmt.Sprintf("Write two ranges: %s-%d,%d-%s.", low, top, p.first, high))
		}
	case hasStep && !hashed:
		last = top
	}
	return first, last, hashed, nil
}

// value reads a number or a name.
func (p *fieldParser) value(text string) (int, bool) {
	if i := slices.Index(p.names, strings.ToLower(text)); i >= 0 {
		return p.first + i, true
	}
	if len(text) == 0 || len(text) > 2 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= p.first && n <= p.last
}

// hash chooses one of n values, the same for the same seed and field.
func (p *fieldParser) hash(n int) int {
	h := fnv.New64a()
	h.Write([]byte(p.name + "\x00" + p.seed))
	v := h.Sum64()
	v ^= v >> 32
	return int(v % uint64(n))
}
