package view

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestW15SafeText checks that nothing but colours passes of what terminals obey.
func TestW15SafeText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext\n":                        "plain\n\ttext\n",
		"\x1b[1;31mred\x1b[0m":                   "\x1b[1;31mred\x1b[0m",
		"\x1b]0;title\x07":                       "␛]0;title␇",
		"\x1b]8;;http://evil\x1b\\x":             "␛]8;;http://evil␛\\x",
		"\x1b]52;c;AAAA\x07":                     "␛]52;c;AAAA␇",
		"\x1bP1$r\x1b\\":                         "␛P1$r␛\\",
		"\x1b[2J\x1b[?1000h":                     "␛[2J␛[?1000h",
		"50%\r100%\r\n":                          "50%\n100%\n",
		"\u009b31m":                              "\\u009b31m",
		"\u202egnp.exe":                          "\\u202egnp.exe",
		"a\xffb":                                 "a\ufffdb",
		"\x7f\x00":                               "␡␀",
		"\x1b[" + strings.Repeat("1;", 40) + "m": "␛[" + strings.Repeat("1;", 40) + "m",
	} {
		if got := SafeText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzSafeText(f *testing.F) {
	f.Add("\x1b[31m\x1b]8;;x\x07")
	f.Fuzz(func(t *testing.T, in string) {
		out := SafeText(in)
		rest := out
		for {
			i := strings.IndexByte(rest, 0x1b)
			if i < 0 {
				break
			}
			m := leadingColour.FindString(rest[i:])
			if m == "" {
				t.Fatalf("%q: got %q", in, out)
			}
			rest = rest[i+len(m):]
		}
		if !utf8.ValidString(out) || strings.ContainsAny(out, "\r\x00\x07") {
			t.Fatalf("%q: got %q", in, out)
		}
	})
}
