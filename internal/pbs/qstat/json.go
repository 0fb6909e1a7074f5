package qstat

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// jsonPrinter is the format of qstat -f -F json. Its layout is that of OpenPBS's library,
// with a tab for each level.
type jsonPrinter struct {
	w         io.Writer
	buffer    []byte
	hasObject bool // an object was printed
}

// NewJSON returns a printer of one JSON document. Without objects the key of their kind
// is missing. The head is written at once.
func NewJSON(w io.Writer, now time.Time, version, server string) FullPrinter {
	d := &jsonPrinter{w: w}
	d.buffer = append(d.buffer, "{\n\t\"timestamp\":\t"...)
	d.buffer = strconv.AppendInt(d.buffer, now.Unix(), 10)
	d.buffer = append(d.buffer, ",\n\t\"pbs_version\":\t"...)
	d.buffer = appendString(d.buffer, version)
	d.buffer = append(d.buffer, ",\n\t\"pbs_server\":\t"...)
	d.buffer = appendString(d.buffer, server)
	return d
}

func (d *jsonPrinter) Print(o *Object) error {
	if !d.hasObject {
		d.hasObject = true
		d.buffer = append(append(append(d.buffer, ",\n\t\""...), o.Kind.jsonKey()...), "\":\t{\n\t\t"...)
	} else {
		d.buffer = append(d.buffer, ",\n\t\t"...)
	}
	d.buffer = append(appendString(d.buffer, o.Name), ":\t{"...)
	for i := 0; i < len(o.Attributes); i++ {
		if i > 0 {
			d.buffer = append(d.buffer, ',')
		}
		a := &o.Attributes[i]
		d.beginEntry(3, a.Name)
		switch {
		case a.Resource != "":
			last := i
			for last+1 < len(o.Attributes) && o.Attributes[last+1].Name == a.Name {
				last++
			}
			d.writeResources(o.Attributes[i : last+1])
			i = last
		case a.List != nil:
			d.writeList(a.List)
		case isAlwaysText(a.Name):
			d.buffer = appendString(d.buffer, a.Value)
		default:
			d.buffer = appendValue(d.buffer, a.Value)
		}
	}
	d.buffer = append(d.buffer, "\n\t\t}"...)
	return d.flush()
}

// beginEntry begins an entry of an object at a depth.
func (d *jsonPrinter) beginEntry(depth int, name string) {
	d.buffer = append(d.buffer, '\n')
	for range depth {
		d.buffer = append(d.buffer, '\t')
	}
	d.buffer = append(appendString(d.buffer, name), ":\t"...)
}

func (d *jsonPrinter) writeResources(list []ObjectAttribute) {
	d.buffer = append(d.buffer, '{')
	for i := range list {
		if i > 0 {
			d.buffer = append(d.buffer, ',')
		}
		d.beginEntry(4, list[i].Resource)
		d.buffer = appendValue(d.buffer, list[i].Value)
	}
	d.buffer = append(d.buffer, "\n\t\t\t}"...)
}

func (d *jsonPrinter) writeList(items []string) {
	d.buffer = append(d.buffer, '{')
	for i, item := range items {
		if i > 0 {
			d.buffer = append(d.buffer, ',')
		}
		name, value, _ := strings.Cut(item, "=")
		d.beginEntry(4, name)
		d.buffer = appendValue(d.buffer, value)
	}
	d.buffer = append(d.buffer, "\n\t\t\t}"...)
}

func (d *jsonPrinter) Close() error {
	if d.hasObject {
		d.buffer = append(d.buffer, "\n\t}"...)
	}
	d.buffer = append(d.buffer, "\n}\n"...)
	return d.flush()
}

func (d *jsonPrinter) flush() error {
	_, err := d.w.Write(d.buffer)
	d.buffer = d.buffer[:0]
	return err
}

// isAlwaysText reports whether an attribute is a string even if it looks like a number.
// Users name jobs 1 and true.
func isAlwaysText(name string) bool {
	return name == "Job_Name" || name == "project" || name == "Account_Name"
}

// appendValue appends valid JSON as it is, and other text as a string. Numbers keep their
// digits; one with an exponent out of range is a string.
func appendValue(b []byte, value string) []byte {
	if value == "" {
		return append(b, `""`...)
	}
	switch c := value[0]; {
	case c == '-' || c >= '0' && c <= '9':
		if !isNumber(value) {
			return appendString(b, value)
		}
		return append(b, value...)
	case value == "true" || value == "false" || value == "null":
		return append(b, value...)
	case c == '{' || c == '[' || c == '"':
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(value)) == nil && utf8.ValidString(value) {
			return append(b, compact.Bytes()...)
		}
	}
	return appendString(b, value)
}

// isNumber reports whether a text is a JSON number (RFC 8259, section 6) within range.
func isNumber(s string) bool {
	if digits := strings.TrimPrefix(s, "-"); strings.Trim(digits, "0123456789") == "" {
		return digits != "" && (digits[0] != '0' || len(digits) == 1)
	}
	if !json.Valid([]byte(s)) {
		return false
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && !math.IsInf(f, 0)
}

// appendString appends a string. Invalid UTF-8 is replaced, because JSON cannot hold it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case '\r':
			b = append(b, `\r`...)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		default:
			if c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0 { // a control character above ASCII
				i++
				c = s[i]
			}
			if c < ' ' || c >= 0x7f && c < 0xa0 && (c == 0x7f || s[i-1] == 0xc2) {
				b = append(b, `\u00`...)
				b = append(b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			} else {
				b = append(b, c)
			}
		}
	}
	return append(b, '"')
}
