package classad

import (
	"fmt"
	"strings"
	"testing"
)

// TestInternPool checks that ads have the same contents with and without a pool. Changing
// an ad or a copy must change no other.
func TestInternPool(t *testing.T) {
	texts := []string{
		"[]", `[A = 1; b = -0.0; B2 = "x"; C = A + 1; D = {1, [x = 2]}; E = [y = A]; F = undefined; G = error; H = TARGET.A == MY.A]`,
		`[a = 1; b = 0.0]`, `[A = 1; b = "1"]`, `[A = true; b = 1.0]`, `[A = 1; b = real("NaN")]`,
		`[A = "` + strings.Repeat("y", 300) + `"; b = 2]`,
	}
	for i := range 20 { // more than a few attributes, in various orders
		var b strings.Builder
		for k := range 10 + i%3 {
			fmt.Fprintf(&b, "N%d = %d; ", (k+i%2)%13, k%4)
		}
		texts = append(texts, "["+b.String()+"Start = TARGET.RequestCpus <= N2]")
	}
	pool := NewPool()
	var pooled, plain []*Ad
	for _, text := range texts {
		a, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Parse(text)
		pool.Intern(a)
		pooled, plain = append(pooled, a), append(plain, b)
	}
	same := func(what string) {
		t.Helper()
		for i, a := range pooled {
			if a.String() != plain[i].String() {
				t.Fatalf("%s: %s became %s", what, plain[i], a)
			}
			for _, name := range plain[i].Names() {
				if got, want := a.Eval(name, nil).String(), plain[i].Eval(name, nil).String(); got != want {
					t.Fatalf("%s: %s of %s is %s", what, name, plain[i], got)
				}
			}
			if len(plain[i].Names()) > 0 && a.labelIndex(hashName("nothing"), "nothing") >= 0 {
				t.Fatalf("%s: %s has an attribute that is not there", what, a)
			}
		}
	}
	same("pooled")
	for i, a := range pooled {
		c := a.Copy()
		c.SetInt("Another", 7)
		c.Delete("N3")
		c.SetInt("A", 99)
		if i%3 == 0 {
			a.SetInt("Mine", int64(i))
			plain[i].SetInt("Mine", int64(i))
		}
		if i%4 == 0 {
			a.Delete("N1")
			plain[i].Delete("N1")
		}
		if got, want := a.Copy().String(), a.String(); got != want {
			t.Fatalf("a copy of %s is %s", want, got)
		}
	}
	same("changed")
}
