package submit

import "testing"

// TestFormatLine holds the form of diagnostics of other languages.
func TestFormatLine(t *testing.T) {
	l := LineDiagnostic{File: "x.dag", Line: 7, Column: 7, Width: 2, Source: "RETRY nn 3", Summary: "there is no node",
		Detail: "Did you mean n?"}
	want := "Error: there is no node\n\n  on x.dag line 7:\n   7: RETRY nn 3\n            ^^\nDid you mean n?\n"
	if got := FormatLine(l, 0, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	l.Line, l.IsWarning = 0, true
	if got, want := FormatLine(l, 0, false), "Warning: x.dag: there is no node\n\nDid you mean n?\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
