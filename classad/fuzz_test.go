package classad

import (
	"encoding/json"
	"testing"
	"time"
)

func addSeeds(f *testing.F) {
	for _, src := range []string{
		`a.b[1] ?: -c ? "x\n" "y" : { 1.5, [ d = e; 'f g' = h(.i) ] }`,
		`TARGET.Memory >= RequestMemory && MY.x =?= undefined || !(y isnt "z")`,
		`evalInEachContext(a > 1, { [ a = 2 ], [ a = b ], undefined })`,
		`regexps("(a+)b", "xaab", "\\1", "ig")`, `relTime("1+02:03:04") - absTime("2020-01-01T00:00:00Z")`,
		`eval("strcat(a, 1e300 * 10, real(\"NaN\"))")`, `{ list }.x`, `-9223372036854775808 / -1`, `1 << 64 >>> -1`,
		`formatTime(splitTime(0), "%c %j")`, `unresolved(a)`, `quantize(5, { 3, b })`, `stringListSum("1,2.5; x", ";")`,
		`'a\101'`,
		`mergeEnvironment("A='b c'", envV1ToV2("x=1;y"))`, `substr("abc", -9223372036854775808, 9223372036854775807)`,
	} {
		f.Add(src)
	}
}

// FuzzParse parses any text and compares the result with what is parsed from its printed
// form.
func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		e, err := ParseExpr(src)
		if err != nil {
			return
		}
		text := e.String()
		again, err := ParseExpr(text)
		if err != nil {
			t.Fatalf("%q prints as %q: %v", src, text, err)
		}
		if again.String() != text {
			t.Fatalf("%q prints as %q, which prints as %q", src, text, again.String())
		}
		Conjuncts(e)
		References(e)
	})
}

// FuzzEval evaluates any text in a match, twice. It checks that the evaluation ends, does
// not panic, and is deterministic.
func FuzzEval(f *testing.F) {
	addSeeds(f)
	my := parseOrFail(f,
		`[ a = 1; b = TARGET.c; list = { list, 1, a }; s = "x,y"; sub = [ p = parent; q = sub.q; a = 2 ] ]`)
	target := parseOrFail(f, `[ c = MY.d + 1; d = TARGET.a; Memory = 5; e = root; self = 3 ]`)
	f.Fuzz(func(t *testing.T, src string) {
		e, err := ParseExpr(src)
		if err != nil {
			return
		}
		env := &EvalEnv{Now: time.Unix(1e9, 0).UTC(), Random: func() float64 { return 0.5 }, Steps: 10_000}
		v := Eval(e, my, target, env)
		if w := Eval(e, my, target, env); v.String() != w.String() {
			t.Fatalf("%q is %s and then %s", src, v, w)
		}
		v.Elements(env)
		if _, err := ParseExpr(v.String()); err != nil && len(v.String()) < MaxBytes {
			t.Fatalf("%q is %s, which is not in the language: %v", src, v, err)
		}
	})
}

// FuzzAd reads any text as an ad in all three forms, and writes each ad in its form.
func FuzzAd(f *testing.F) {
	f.Add(`[ a = 1; b = { "x", [ c = a ] }; 'd e' = -0.0 ]`)
	f.Add("A = 1\n# no\nB = \"x\\\"\"\n")
	f.Add(`{"a":[1,2.5,null,"/Expr(x + 1)/"],"b":{"c":"\u00fc"}}`)
	f.Fuzz(func(t *testing.T, src string) {
		if ad, err := Parse(src); err == nil {
			again, err := Parse(ad.String())
			if err != nil || again.String() != ad.String() {
				t.Fatalf("%q prints as %s and comes back as %v, %v", src, ad, again, err)
			}
			roundTripJSON(t, ad)
		}
		if ad, err := ParseOld(src); err == nil {
			_ = ad.Old()
			if _, err := Parse(ad.String()); err != nil {
				t.Fatalf("%q prints as %s: %v", src, ad, err)
			}
		}
		var ad Ad
		if json.Unmarshal([]byte(src), &ad) == nil {
			roundTripJSON(t, &ad)
		}
	})
}

func roundTripJSON(t *testing.T, ad *Ad) {
	t.Helper()
	text, err := json.Marshal(ad)
	if err != nil {
		t.Fatalf("%s: %v", ad, err)
	}
	var back Ad
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%s is %s in JSON: %v", ad, text, err)
	}
	again, err := json.Marshal(&back)
	if err != nil || string(again) != string(text) {
		t.Fatalf("%s comes back as %s, %v", text, again, err)
	}
}
