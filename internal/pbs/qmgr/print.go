package qmgr

import (
	"fmt"
	"strings"
)

// Name is how a value's attribute is written.
func (v AttributeValue) Attribute() string {
	return AttributeChange{Name: v.Name, Resource: v.Resource}.Attribute()
}

// isSelected reports whether a value is among the attributes that were asked for; all, if
// none were.
func isSelected(v AttributeValue, only []AttributeChange) bool {
	for _, c := range only {
		if strings.EqualFold(c.Name, v.Name) && (c.Resource == "" || c.Resource == v.Resource) {
			return true
		}
	}
	return len(only) == 0
}

// PrintCommands writes what makes an object what it is: the items of a list, and limits,
// each in a line of its own.
func PrintCommands(kind ObjectKind, name string, values []AttributeValue, only []AttributeChange) string {
	var b strings.Builder
	subject := string(kind)
	if name != "" {
		subject += " " + name
	}
	last := ""
	for _, v := range values {
		if !isSelected(v, only) {
			continue
		}
		op := "="
		if v.Attribute() == last {
			op = "+="
		}
		last = v.Attribute()
		fmt.Fprintf(&b, "set %s %s %s %s\n", subject, v.Attribute(), op, quotedText(v.Text))
	}
	return b.String()
}

// quotedText puts quotes about what would not be read back otherwise.
func quotedText(text string) string {
	switch {
	case text == "" || strings.ContainsAny(text, " \t,#'") && !strings.Contains(text, `"`):
		return `"` + text + `"`
	case strings.ContainsAny(text, " \t,#\""):
		return "'" + text + "'"
	}
	return text
}

// SectionHeading is the comment before the commands that make a part of what there is.
func SectionHeading(text string) string { return "#\n# " + text + "\n#\n" }

// ListObject writes an object as list does: the items of a list in one line.
func ListObject(title string, values []AttributeValue, only []AttributeChange) string {
	var b strings.Builder
	fmt.Fprintln(&b, title)
	for _, v := range JoinedAttributes(values) {
		if isSelected(v, only) {
			fmt.Fprintf(&b, "    %s = %s\n", v.Attribute(), v.Text)
		}
	}
	return b.String() + "\n"
}

// JoinedAttributes puts the items of each list together, with commas between them.
func JoinedAttributes(values []AttributeValue) (all []AttributeValue) {
	for _, v := range values {
		if n := len(all); n > 0 && all[n-1].Attribute() == v.Attribute() {
			all[n-1].Text += "," + v.Text
		} else {
			all = append(all, v)
		}
	}
	return all
}
