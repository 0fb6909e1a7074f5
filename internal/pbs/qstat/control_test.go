package qstat

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestNoFormatPassesControlCharacters prints control characters in all formats. None may
// get through, in short values, folded ones or lists.
func TestNoFormatPassesControlCharacters(t *testing.T) {
	evil := "/tmp/e\x1b[31m\x9bx\u009b2J\x07\r\x9b\x9b\xff\x9by é\x80"
	long := strings.Repeat("p", 100) + evil + strings.Repeat(",q", 50) + evil
	o := &Object{Kind: Jobs, Name: "1.pool", Attributes: []ObjectAttribute{
		{Name: "Account_Name", Value: evil}, {Name: "Output_Path", Value: long}, {Name: "Resource_List",
			Resource: "software", Value: evil}, {Name: "Variable_List", List: []string{"A=" + evil, "B=" + long}},
	}}
	for name, of := range map[string]func(*bytes.Buffer) FullPrinter{
		"lines": func(b *bytes.Buffer) FullPrinter { return NewLines(b, false) },
		"wide":  func(b *bytes.Buffer) FullPrinter { return NewLines(b, true) },
		"dsv":   func(b *bytes.Buffer) FullPrinter { return NewDelimited(b, "|") },
		"json":  func(b *bytes.Buffer) FullPrinter { return NewJSON(b, time.Unix(0, 0), "1", "pool") },
		"xml":   func(b *bytes.Buffer) FullPrinter { return NewXML(b, true) },
	} {
		var b bytes.Buffer
		f := of(&b)
		if err := f.Print(o); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for i, r := range b.String() {
			lone := r == utf8.RuneError && b.Bytes()[i] >= 0x80 && b.Bytes()[i] < 0xa0
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || lone {
				t.Errorf("%s: character %#x at %d: %q", name, b.Bytes()[i], i, b.String()[max(i-20, 0):i+2])
			}
		}
		if !strings.Contains(b.String(), "é") {
			t.Errorf("%s: what is no control character is lost", name)
		}
	}
}
