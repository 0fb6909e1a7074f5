package linetext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roost-batch/roost/internal/accounting/accountingtest"
)

// TestAppend escapes texts, and cuts them.
func TestAppend(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"plain-name_1.5", 100, "plain-name_1.5"},
		{"two words", 100, "two%20words"},
		{"50%", 100, "50%25"},
		{"a|b\nc\r", 100, "a%7Cb%0Ac%0D"},
		{"bad\xff", 100, "bad%FF"},
		{"näme", 100, "näme"},
		{"no\u00a0break \u202eright", 100, "no%C2%A0break%20%E2%80%AEright"},
		{"abcdef", 3, "abc"},
		{"ab cd", 4, "ab"},
		{"ab cd", 5, "ab%20"},
		{"abä", 3, "ab"},
		{"\xff\xff", 5, "%FF"},
		{"", 5, ""},
		{"a", 0, ""},
	} {
		if got := string(NewEscaper(" |").Append([]byte("x="), c.text, c.most)); got != "x="+c.want {
			t.Errorf("%q cut to %d: got %q, want %q", c.text, c.most, got, "x="+c.want)
		}
	}
}

// FuzzAppend holds that any text comes back, and that no separator is in the output. A
// cut is a prefix within its bound.
func FuzzAppend(f *testing.F) {
	for _, text := range []string{"", "a b", "%41", "a|b=c\"d", "x\r\ny", "\xff\xfe", "é\u2028\u0085", "=1+1"} {
		f.Add(text, 7)
	}
	e := NewEscaper(" |")
	f.Fuzz(func(t *testing.T, text string, most int) {
		whole := string(e.Append(nil, text, 3*len(text)))
		if strings.ContainsAny(whole, " |\n\r\t\x00\u0085\u2028") || !utf8.ValidString(whole) {
			t.Errorf("%q has a separator: %q", text, whole)
		}
		if back, err := accountingtest.Unescape(whole); err != nil || back != text {
			t.Errorf("%q came back as %q (%v)", text, back, err)
		}
		most = min(max(most, 0), 1<<16)
		cut := string(e.Append(nil, text, most))
		if back, err := accountingtest.Unescape(cut); len(cut) > most || err != nil || !strings.HasPrefix(text, back) {
			t.Errorf("%q cut to %d is %q (%v)", text, most, cut, err)
		}
	})
}
