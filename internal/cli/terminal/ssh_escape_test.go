package terminal

import (
	"strings"
	"testing"
)

// TestEscapes holds what goes to the shell, whatever pieces the keys come in. In the
// cases "|" separates pieces and "!" is the end.
func TestEscapes(t *testing.T) {
	for typed, want := range map[string]string{
		"ls\r":           "ls\r",
		"~.":             "!",
		"~|.":            "!",
		"ls\r~.x":        "ls\r!",
		"a~.":            "a~.",
		"cd ~\r~|x|y":    "cd ~\r~xy",
		"~~.":            "~~.",
		"\x03~.":         "\x03!",
		"abc\x15~.":      "abc\x15!",
		"x\n~\x1ay\r~.z": "x\n~\x1ay\r!",
		"~":              "",
		"~\r~.":          "~\r!",
	} {
		e := EscapeFilter{}
		var got strings.Builder
		for piece := range strings.SplitSeq(typed, "|") {
			send, leave := e.FilterInput([]byte(piece))
			if got.Write(send); leave {
				got.WriteByte('!')
				break
			}
		}
		if got.String() != want {
			t.Errorf("%q: got %q, want %q", typed, got.String(), want)
		}
	}
}
