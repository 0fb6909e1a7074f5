package classad

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestProjectAd compares projecting with parsing and deleting, for all kinds of values.
func TestProjectAd(t *testing.T) {
	for _, text := range []string{
		`[]`, `[A = 1]`, `[A = 1; B = "x;]\"y"; C = {1, "}", [D = 3; A = 4]}; Env = {"P=[;", "Q=\\"}]`,
		` [ a=1 ;b = (2 + 3) * 4; A2 = 7 ; ] `, "[A = 1 /* ; B = 2 */; B = 3]", "[A = 1 // ]\n; B = 3]",
		`['odd name' = 1; A = 2]`, `[A = B == 3; B = A =?= undefined; C = x ? [y = 1].y : "]"]`,
		`[A = 7 / 2; B = "// no comment"]`, `[A = 1`, `A = 1`, `[A = "open]`, ``, `[A = 1]]`,
	} {
		for _, names := range []string{"A", "b c", "Env a", "", "a a2 b c env"} {
			wanted := func(name string) bool {
				for _, n := range strings.Fields(names) {
					if strings.EqualFold(n, name) {
						return true
					}
				}
				return false
			}
			got, ok := ProjectAd(text, wanted)
			ad, err := Parse(text)
			if ok != (err == nil) {
				t.Errorf("%q: ok is %v, and parsing says %v", text, ok, err)
				continue
			}
			if !ok {
				continue
			}
			for _, name := range ad.Names() {
				if !wanted(name) {
					ad.Delete(name)
				}
			}
			again, err := Parse(got)
			if err != nil || again.String() != ad.String() {
				t.Errorf("%q of %q: got %q (%v), want %q", names, text, got, err, ad)
			}
		}
	}
}

func BenchmarkPick(b *testing.B) {
	ad := New()
	ad.SetString("Script", strings.Repeat("#!/bin/sh\necho \"hello\"\n", 100))
	ad.SetString("Name", "x")
	text := ad.String()
	for b.Loop() {
		ProjectAd(text, func(name string) bool { return name == "Name" })
	}
	b.SetBytes(int64(len(text)))
}

// TestQuoteEnd compares quoteEnd with a loop over each character.
func TestQuoteEnd(t *testing.T) {
	naive := func(text string) int {
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '"':
				return i
			case '\\':
				i++
			}
		}
		return -1
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 20_000 {
		b := make([]byte, rng.IntN(12)*(1+rng.IntN(9)))
		for i := range b {
			b[i] = 'a'
			if rng.IntN(12) == 0 {
				b[i] = `'"\`[rng.IntN(3)]
			}
		}
		if got, want := quoteEnd(string(b), '"'), naive(string(b)); got != want {
			t.Fatalf("%q: got %d, want %d", b, got, want)
		}
	}
}

// BenchmarkPickEnvironment measures what qstat does with the ad of a job submitted with
// qsub -V.
func BenchmarkPickEnvironment(b *testing.B) {
	ad := New()
	env := make([]string, 64)
	for i := range env {
		env[i] = fmt.Sprintf("VARIABLE_%d=%s", i, strings.Repeat("/opt/modules/lib:", 7))
	}
	ad.SetStrings("Environment", env)
	ad.SetString("Name", "x")
	text := ad.String()
	for b.Loop() {
		ProjectAd(text, func(name string) bool { return name == "Name" })
	}
	b.SetBytes(int64(len(text)))
}
