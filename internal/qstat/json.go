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

// document is the format of qstat -f -F json, laid out as OpenPBS's library does, a tab a level.
type document struct {
	w    io.Writer
	b    []byte
	open bool // there was an object
}

// NewJSON returns what prints one JSON document of all objects. The key of their kind is not there when there are none. Begin is written at once.
func NewJSON(w io.Writer, now time.Time, version, server string) Full {
	d := &document{w: w}
	d.b = append(d.b, "{\n\t\"timestamp\":\t"...)
	d.b = strconv.AppendInt(d.b, now.Unix(), 10)
	d.b = append(d.b, ",\n\t\"pbs_version\":\t"...)
	d.b = appendString(d.b, version)
	d.b = append(d.b, ",\n\t\"pbs_server\":\t"...)
	d.b = appendString(d.b, server)
	return d
}

func (d *document) Print(o *Object) error {
	if !d.open {
		d.open = true
		d.b = append(append(append(d.b, ",\n\t\""...), o.Kind.key()...), "\":\t{\n\t\t"...)
	} else {
		d.b = append(d.b, ",\n\t\t"...)
	}
	d.b = append(appendString(d.b, o.Name), ":\t{"...)
	for i := 0; i < len(o.Attributes); i++ {
		if i > 0 {
			d.b = append(d.b, ',')
		}
		a := &o.Attributes[i]
		d.key(3, a.Name)
		switch {
		case a.Resource != "":
			last := i
			for last+1 < len(o.Attributes) && o.Attributes[last+1].Name == a.Name {
				last++
			}
			d.resources(o.Attributes[i : last+1])
			i = last
		case a.List != nil:
			d.list(a.List)
		case alwaysText(a.Name):
			d.b = appendString(d.b, a.Value)
		default:
			d.b = appendValue(d.b, a.Value)
		}
	}
	d.b = append(d.b, "\n\t\t}"...)
	return d.flush()
}

// key begins an entry of an object, so many levels deep.
func (d *document) key(depth int, name string) {
	d.b = append(d.b, '\n')
	for range depth {
		d.b = append(d.b, '\t')
	}
	d.b = append(appendString(d.b, name), ":\t"...)
}

func (d *document) resources(list []Attribute) {
	d.b = append(d.b, '{')
	for i := range list {
		if i > 0 {
			d.b = append(d.b, ',')
		}
		d.key(4, list[i].Resource)
		d.b = appendValue(d.b, list[i].Value)
	}
	d.b = append(d.b, "\n\t\t\t}"...)
}

func (d *document) list(items []string) {
	d.b = append(d.b, '{')
	for i, item := range items {
		if i > 0 {
			d.b = append(d.b, ',')
		}
		name, value, _ := strings.Cut(item, "=")
		d.key(4, name)
		d.b = appendValue(d.b, value)
	}
	d.b = append(d.b, "\n\t\t\t}"...)
}

func (d *document) Close() error {
	if d.open {
		d.b = append(d.b, "\n\t}"...)
	}
	d.b = append(d.b, "\n}\n"...)
	return d.flush()
}

func (d *document) flush() error {
	_, err := d.w.Write(d.b)
	d.b = d.b[:0]
	return err
}

// alwaysText reports whether an attribute is a string even if it looks like a number: people call jobs 1 and true.
func alwaysText(name string) bool {
	return name == "Job_Name" || name == "project" || name == "Account_Name"
}

// appendValue adds what is JSON by itself as it is, and everything else as a string. Numbers keep their digits; one with an exponent that no computer
// holds is a string.
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

// isNumber reports whether a text is a number of JSON (RFC 8259, section 6) that has a value.
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

// appendString adds a string. What is no UTF-8 is replaced, because it cannot stand in JSON.
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
