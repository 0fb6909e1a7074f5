package qmgr

import (
	"fmt"
	"strings"
)

// Attribute returns the attribute's name with its resource.
func (v AttributeValue) Attribute() string {
	return AttributeChange{Name: v.Name, Resource: v.Resource}.Attribute()
}

// isSelected reports whether a value is among the selected attributes. An empty selection
// selects all.
func isSelected(v AttributeValue, only []AttributeChange) bool {
	for _, c := range only {
		if strings.EqualFold(c.Name, v.Name) && (c.Resource == "" || c.Resource == v.Resource) {
			return true
		}
	}
	return len(only) == 0
}

// PrintCommands writes the commands that create an object. Each item of a list and each
// limit has its own line.
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

// quotedText quotes text that could not be read back otherwise.
func quotedText(text string) string {
	switch {
	case text == "" || strings.ContainsAny(text, " \t,#'") && !strings.Contains(text, `"`):
		return `"` + text + `"`
	case strings.ContainsAny(text, " \t,#\""):
		return "'" + text + "'"
	}
	return text
}

// SectionHeading returns the comment before a section of commands.
func SectionHeading(text string) string { return "#\n# " + text + "\n#\n" }

// ListObject formats an object as list does, with the items of a list in one line.
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

// JoinedAttributes joins the items of each list with commas.
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
