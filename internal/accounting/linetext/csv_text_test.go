package linetext

import "testing"

// TestQuoteFormula tries formulas, among them those that begin as a number does, or with
// blanks or wide characters.
func TestQuoteFormula(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "ocean": "ocean", "a=b": "a=b", "12": "12", "-12": "-12", "-12.50": "-12.50", "-": "'-",
		"=1+1": "'=1+1", "+1": "'+1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1",
		"-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0", "-1\n=1": "'-1\n=1", "'=1": "''=1", " =1": "' =1",
		"|x": "'|x", "\uff1d1": "'\uff1d1", " -1": "' -1",
	} {
		if got := QuoteFormula(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
