// Package qstat lays out what qstat prints: jobs, queues and servers, in the formats of
// OpenPBS (qstat(1B) of its manual, whose columns, widths and folding clients rely on)
// and the XML of Torque. It is pure: what there is to print comes in, text comes out.
package qstat

import (
	"strings"
	"unicode/utf8"
)

// ObjectAttribute is something that is known of an object, as PBS names it: "Priority",
// or with a resource "Resource_List" and "ncpus".
type ObjectAttribute struct {
	Name     string
	Resource string
	Value    string
	List     []string // instead of Value: items, each "name=value", as in Variable_List
}

// Text is the value in one piece. Commas within items are told from those between them by
// a backslash, as in OpenPBS.
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

// ObjectKind is what an object is.
type ObjectKind int

// The kinds.
const (
	Jobs ObjectKind = iota
	Queues
	Servers
	Nodes // of pbsnodes -x only
)

// heading is what stands before an object's name, and key what holds all of a kind in
// JSON.
func (k ObjectKind) heading() string { return [...]string{"Job Id", "Queue", "Server"}[k] }
func (k ObjectKind) jsonKey() string { return [...]string{"Jobs", "Queue", "Server"}[k] }

// Object is a job, a queue or a server, with everything about it.
type Object struct {
	Kind       ObjectKind
	Name       string
	Attributes []ObjectAttribute
}

// appendVisible adds a text with what moves the cursor of a terminal made visible:
// control characters as ^X, as in OpenPBS, but line feed and form feed as \n and \f,
// because a value that begins a line of its own could pass for another attribute, or
// another job.
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
			case n == 1 && c < 0xa0: // the same for a terminal that knows no UTF-8
				b = append(b, '^', '[', c-64)
			default:
				b = append(b, text[i:i+n]...)
			}
			i += n - 1
		}
	}
	return b
}

// VisibleText is a text that moves no terminal's cursor.
func VisibleText(text string) string {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c >= 0x7f {
			return string(appendVisible(nil, text))
		}
	}
	return text
}

// ShortHost is the name of a host up to its first point; an address stays whole.
func ShortHost(name string) string {
	if short, _, ok := strings.Cut(name, "."); ok && short != "" && strings.Trim(name, "0123456789.") != "" {
		return short
	}
	return name
}

// ShortHosts is a list of places, as in "n1.pool/0*4+n2.pool/0", with short names of
// hosts.
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
