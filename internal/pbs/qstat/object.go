// Package qstat formats the output of qstat as OpenPBS does, and in the formats of
// Torque. It prints jobs, queues and servers. Clients rely on the columns, widths and
// folding of OpenPBS's manual (qstat(1B)). It is pure: data in, text out.
package qstat

import (
	"strings"
	"unicode/utf8"
)

// ObjectAttribute is an attribute in PBS's names, such as "Priority". With a resource it
// is like "Resource_List" and "ncpus".
type ObjectAttribute struct {
	Name     string
	Resource string
	Value    string
	List     []string // in place of Value: items "name=value", as in Variable_List
}

// Text returns the value as one text. Commas within items are escaped with a backslash,
// as in OpenPBS.
func (a *ObjectAttribute) Text() string {
	if a.List == nil {
		return a.Value
	}
	var b strings.Builder
	for i, item := range a.List {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(item, ",", `\,`))
	}
	return b.String()
}

// ObjectKind is the kind of an object.
type ObjectKind int

// The kinds.
const (
	Jobs ObjectKind = iota
	Queues
	Servers
	Nodes // for pbsnodes -x only
)

// heading returns the text before an object's name.
func (k ObjectKind) heading() string { return [...]string{"Job Id", "Queue", "Server"}[k] }
func (k ObjectKind) jsonKey() string { return [...]string{"Jobs", "Queue", "Server"}[k] }

// Object is a job, a queue or a server with all its attributes.
type Object struct {
	Kind       ObjectKind
	Name       string
	Attributes []ObjectAttribute
}

// appendVisible appends a text with control characters made visible. They become ^X as in
// OpenPBS, but line feed and form feed become \n and \f, because a value that began a new
// line could pass for another attribute or another job.
func appendVisible(b []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c < ' ' && c != '\t':
			b = append(b, '^', c+64)
		case c == 0x7f:
			b = append(b, "^?"...)
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			switch {
			case r >= 0x80 && r < 0xa0: // the control characters above ASCII
				b = append(b, '^', '[', byte(r)-64)
			case n == 1 && c < 0xa0: // the same for a terminal without UTF-8
				b = append(b, '^', '[', c-64)
			default:
				b = append(b, text[i:i+n]...)
			}
			i += n - 1
		}
	}
	return b
}

// VisibleText returns a text without control characters.
func VisibleText(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c >= 0x7f {
			return string(appendVisible(nil, text))
		}
	}
	return text
}

// ShortHost returns the name of a host up to the first dot; an address is not cut.
func ShortHost(name string) string {
	if short, _, ok := strings.Cut(name, "."); ok && short != "" && strings.Trim(name, "0123456789.") != "" {
		return short
	}
	return name
}

// ShortHosts returns a list of places such as "n1.pool/0*4+n2.pool/0" with short host
// names.
func ShortHosts(places string) string {
	if !strings.Contains(places, ".") {
		return places
	}
	list := strings.Split(places, "+")
	for i, place := range list {
		host, slots, cut := strings.Cut(place, "/")
		if list[i] = ShortHost(host); cut {
			list[i] += "/" + slots
		}
	}
	return strings.Join(list, "+")
}
