package config

import (
	"math/rand/v2"
	"testing"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestQuotedText checks that HCL reads random texts as they were. Only printable
// characters are in the file.
func TestQuotedText(t *testing.T) {
	alphabet := []rune("a$%{}\\\"\n\t\r\x00\u00e9\u200b\U0001F600\U000e0001 ")
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var text []rune
		for range rng.IntN(7) {
			text = append(text, alphabet[rng.IntN(len(alphabet))])
		}
		quoted := quotedText(string(text))
		for _, r := range quoted {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q is written as %q", string(text), quoted)
			}
		}
		expr, diags := hclsyntax.ParseExpression([]byte(quoted), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%q is written as %s: %v", string(text), quoted, diags)
		}
		value, diags := expr.Value(nil)
		if diags.HasErrors() || value.AsString() != string(text) {
			t.Fatalf("%q is written as %s and read as %#v: %v", string(text), quoted, value, diags)
		}
	}
}
