package config

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// blockText is the body of a block that is written, or of the whole file. Package
// hclwrite does the same with packages that take a millisecond of each command's start.
type blockText struct{ items []blockItem }

// blockItem is an attribute or, with a body, a block.
type blockItem struct {
	head  string // name of an attribute; type and labels of a block
	value string // of an attribute, in HCL
	body  *blockText
}

func (t *blockText) setAttribute(name, value string) {
	t.items = append(t.items, blockItem{head: name, value: value})
}

func (t *blockText) appendBlock(name string, labels []string) *blockText {
	for _, l := range labels {
		name += " " + quotedText(l)
	}
	body := &blockText{}
	t.items = append(t.items, blockItem{head: name, body: body})
	return body
}

// write writes the items in the form of terraform fmt. The equals signs of attributes are
// below each other, and an empty line precedes each block.
func (t *blockText) write(b *strings.Builder, indent string) {
	for i, item := range t.items {
		if item.body != nil {
			fmt.Fprintf(b, "\n%s%s {\n", indent, item.head)
			item.body.write(b, indent+"  ")
			b.WriteString(indent + "}\n")
			continue
		}
		fmt.Fprintf(b, "%s%-*s = %s\n", indent, t.nameWidth(i), item.head,
			strings.ReplaceAll(item.value, "\n", "\n"+indent))
	}
}

// nameWidth is the width of the names around an attribute, up to the next block or value
// of several lines.
func (t *blockText) nameWidth(at int) (width int) {
	breaks := func(i blockItem) bool { return i.body != nil || strings.Contains(i.value, "\n") }
	if breaks(t.items[at]) {
		return 0
	}
	first := at
	for first > 0 && !breaks(t.items[first-1]) {
		first--
	}
	for _, item := range t.items[first:] {
		if breaks(item) {
			break
		}
		width = max(width, len(item.head))
	}
	return width
}

// objectText is an object with those attributes, in HCL.
func objectText(names []string, values map[string]string) string {
	var inner blockText
	for _, name := range names {
		key := name
		if !hclsyntax.ValidIdentifier(name) {
			key = quotedText(name)
		}
		inner.setAttribute(key, quotedText(values[name]))
	}
	var b strings.Builder
	inner.write(&b, "  ")
	return "{\n" + b.String() + "}"
}

// quotedText is a text as a quoted template of HCL that has no interpolations.
func quotedText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteString(string(r) + string(r))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
