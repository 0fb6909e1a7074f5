package classad

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func parseOrFail(t testing.TB, src string) *Ad {
	t.Helper()
	ad, err := Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return ad
}

func evalText(t testing.TB, src string, my, target *Ad, env *EvalEnv) string {
	t.Helper()
	e, err := ParseExpr(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return Eval(e, my, target, env).String()
}

func TestScope(t *testing.T) {
	my := parseOrFail(t, `[ a = 1; b = TARGET.c; c = 7; sub = [ a = 2; up = parent.a; me = MY.a; out = c; top = .a; far = x;
		inner = [ r = root.a; c2 = c ] ]; list = { [ v = 1 ], [ v = a ], 3 }; Name = "left" ]`)
	target := parseOrFail(t, `[ a = 10; c = MY.a + TARGET.a; x = 5; y = c; Name = "right" ]`)
	for _, test := range []struct{ src, want string }{
		{`a`, `1`}, {`MY.a`, `1`}, {`TARGET.a`, `10`}, {`other.a`, `10`}, {`self.a`, `1`},
		{`x`, `5`}, {`MY.x`, `undefined`}, {`TARGET.nosuch`, `undefined`},
		{`b`, `11`}, {`y`, `11`},
		{`sub.a`, `2`}, {`sub.up`, `1`}, {`sub.me`, `2`}, {`sub.out`, `7`}, {`sub.top`, `1`}, {`sub.far`, `undefined`},
		{`sub.inner.r`, `1`}, {`sub.inner.c2`, `7`}, {`sub.c`, `7`}, {`sub["a"]`, `2`},
		{`sub["c"]`, `undefined`}, {`'TARGET'.a`, `10`}, {`'my'.a`, `1`},
		{`list.v`, `{ 1,1,error }`}, {`list[1].v`, `1`}, {`list[3]`, `error`}, {`list[-1]`, `error`},
		{`a.b`, `error`}, {`nosuch.b`, `undefined`}, {`TARGET.Name`, `"right"`},
		{`{ { a } }[0][0]`, `1`}, {`({ { [ q = c ] } }.q)[0][0]`, `7`},
	} {
		if got := evalText(t, test.src, my, target, nil); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
	hiding := parseOrFail(t, `[ target = [ a = 3 ]; my = 4; x = TARGET.a + MY ]`)
	if got := hiding.Eval("x", nil).String(); got != "7" {
		t.Errorf("attributes that hide scopes: got %s, want 7", got)
	}
}

func TestCycles(t *testing.T) {
	ad := parseOrFail(t, `[ a = b; b = a; c = c + 1; d = [ e = d.e ]; f = { f }; g = f.x; h = ifThenElse(true, 1, h) ]`)
	for _, test := range []struct{ name, want string }{
		{"a", "undefined"}, {"c", "undefined"}, {"g", "error"}, {"h", "1"}, {"f", "{ f }"},
	} {
		if got := ad.Eval(test.name, nil).String(); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	if got := evalText(t, "d.e", ad, nil, nil); got != "undefined" {
		t.Errorf("d.e: got %s, want undefined", got)
	}
}

// TestEvalBounds checks that evaluations without end, or with too much memory, are ERROR.
func TestEvalBounds(t *testing.T) {
	grow := func(first, step string) *Ad {
		ad := New()
		ad.SetString("s", strings.Repeat("ab,", 1<<20))
		ad.SetStrings("l", make([]string, 100_000))
		if err := ad.SetExpr("a0", first); err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 100; i++ {
			if err := ad.SetExpr(fmt.Sprintf("a%d", i),
				fmt.Sprintf(strings.ReplaceAll(step, "@", "a%[1]d"), i-1)); err != nil {
				t.Fatal(err)
			}
		}
		return ad
	}
	for _, test := range []struct{ first, step string }{
		{`1 + 0`, `@ + @`},
		{`"x"`, `strcat(@, @)`},
		{`"xx"`, `replaceall("x", @, "xx")`},
		{`"x,"`, `join("", @, @)`},
		{`"a,a"`, `join(",", split(strcat(@, ",", @)))`},
		{`0`, `ifThenElse(s == s && strcmp(s, s) == 0, @, 1) + @`},
		{`0`, `ifThenElse(member("x", l), 1, @) + @`},
		{`0`, `ifThenElse(regexp("(a{1000}){1,3}", s), 1, @) + @`},
		{`0`, `ifThenElse(regexp(strcat("a{1000}b{100", "0}"), "x"), 1, @) + @`},
		{`0`, `size(replaceall("", s, "")) + @`},
		{`0`, `size(split(s, s)) + @`},
		{`0`, `size(formatTime([ Year = 1; Month = 1; Day = @ ], s)) + @`},
		{`"1"`, `eval(strcat("eval(\"", @, "+\",", @, ")"))`},
	} {
		if got := grow(test.first, test.step).Eval("a100", nil); !got.IsError() {
			t.Errorf("%s: got a %v, want an error", test.step, got.Kind())
		}
	}
	deep := New()
	for i := range 50_000 {
		if err := deep.SetExpr(fmt.Sprintf("a%d", i), fmt.Sprintf("a%d + 1", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := deep.Eval("a0", nil); !got.IsError() {
		t.Errorf("50,000 attributes deep: got %v, want an error", got)
	}
	chain := strings.Repeat("1+", 4000) + "1"
	if got := evalText(t, chain, nil, nil, nil); got != "4001" {
		t.Errorf("a long sum: got %s", got)
	}
	if got := evalText(t, chain, nil, nil, &EvalEnv{Steps: 100}); got != "error" {
		t.Errorf("a long sum within 100 steps: got %s, want error", got)
	}
}

func TestEnv(t *testing.T) {
	env := &EvalEnv{Now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600)), Random: func() float64 {
		return 0.75
	}}
	for _, test := range []struct{ src, want string }{
		{`time()`, `1772597167`}, {`CurrentTime`, `1772597167`}, {`timeZoneOffset()`, `relTime("01:00:00")`},
		{`dayTime()`, `relTime("05:06:07")`}, {`absTime()`, `absTime("2026-03-04T05:06:07+01:00")`},
		{`getMonth(absTime(0))`, `1`}, {`getHours(absTime(0))`, `1`},
		{`formatTime(time(), "%Y-%j %p %%")`, `"2026-063 AM %"`},
		{`random()`, `7.500000000000000E-01`}, {`random(10)`, `7`}, {`random(2.0)`, `1.500000000000000E+00`},
	} {
		if got := evalText(t, test.src, nil, nil, env); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
	if got := evalText(t, `{ time(), random(), string(absTime()) }[1]`, nil, nil, nil); got != "error" {
		t.Errorf("random without an Env: got %s, want error", got)
	}
}

func TestFunctions(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{`regexp("a b # x", "ab", "x")`, `true`}, {`regexp("b", "abc", "f")`, `true`}, {`regexp("a$", "a\n")`, `true`},
		{`regexp("B.C", "b\nc", "is")`, `true`},
		{`regexp("(a)\\1", "aa")`, `error`}, {`regexp(strcat("^", "a"), "abc")`, `true`},
		{`replace("b+", "abbbc", "[\\0]")`, `"a[bbb]c"`}, {`replaceall("b", "abbc", "")`, `"ac"`},
		{`argsToList("a 'b c' d''e 'it''s'")`, `{ "a","b c","de","it's" }`},
		{`listToArgs({ "a", "b c", "it's", "" })`, "\"a b' 'c it''''s ''\""},
		{`envV1ToV2("A=1;B=x y")`, `"A=1 B=x' 'y"`}, {`mergeEnvironment("A=1 B=2", undefined, "A=3")`, `"A=3 B=2"`},
		{`relTime(5) == relTime("5")`, `true`},
		{`absTime("2020-01-01T00:00:00Z") + relTime("1+00:00:00")`, `absTime("2020-01-02T00:00:00-00:00")`},
		{`stringListMax("-3,-1")`, `-1`}, {`int(1e300)`, `-9223372036854775808`}, {`int(real("NaN"))`, `error`},
		{`userHome("anna", "/home/anna")`, `"/home/anna"`}, {`nosuch(1)`, `error`}, {`IfThenElse(true, 1)`, `error`},
		{`split("a,,b c, d")`, `{ "a","","b","c","d" }`}, {`split("a@@b@", "@")`, `{ "a","","b" }`},
		{`join(",", "", "a", undefined, "b")`, `"a,b"`},
		{`join("-", {})`, `""`}, {`sum({ 1, undefined, 2.5 })`, `3.500000000000000E+00`}, {`avg({ undefined })`, `0`},
		{`sum({ true })`, `true`},
		{`max({ 3, 2.5 })`, `3.000000000000000E+00`}, {`min({ undefined, true, 2 })`, `1`},
		{`anyCompare("==", { undefined, 1 }, 1)`, `false`},
		{`anyCompare("=?=", { 1 }, 1)`, `error`}, {`regexpMember("a", { "b", undefined })`, `undefined`},
		{`regexpMember("a", { undefined, "a" })`, `true`},
		{`versionCmp("1.10", "1.9")`, `1`}, {`versionCmp("a100", "a9")`, `2`}, {`quantize(7, {})`, `7`},
		{`quantize(7.5, { "2", 4 })`, `8.000000000000000E+00`},
		{`pow(3, 2.5)`, `1.558845726811990E+01`}, {`pow(2, 62)`, `4611686018427387904`}, {`pow(-2, 3)`, `-7`},
		{`pow(-2.0, 3)`, `-8.000000000000000E+00`}, {`pow(10, -2)`, `1.000000000000000E-02`},
		{`int("0x1f")`, `31`}, {`real(" infinity")`, `real("INF")`}, {`int("9007199254740993")`, `9007199254740993`},
		{`bool(relTime(1))`, `true`},
		{`stringListSum("1, 2.0")`, `3.000000000000000E+00`}, {`stringListSum("1 2", "x")`, `1.000000000000000E+00`},
		{`stringListMin("3,1")`, `1`},
		{`stringListMember("b", "a\tb")`, `true`}, {`stringListSize("a\tb")`, `1`},
		{`stringListsIntersect("a; b", "b;c", ";")`, `false`},
		{`stringListSubsetMatch("a", "a", "a")`, `false`}, {`argsToList("a 'b", 1)`, `{ "a","'b" }`},
		{`listToArgs({ "a b" }, 1)`, `error`},
		{`mergeEnvironment("b=1 a=2")`, `"a=2 b=1"`}, {`envV1ToV2("|A=1;2|B=")`, `"A=1;2 B="`},
		{`argsToList(undefined)`, `error`},
		{`userHome("anna", "")`, `undefined`}, {`userHome(1)`, `error`}, {`userHome(undefined, "/x")`, `"/x"`},
		{`interval("90")`, `"1:30"`},
		{`splitTime(relTime(-3661.5)).Hours`, `-1`}, {`relTime(61) / 3`, `relTime("20.3333")`},
		{`absTime("2020")`, `absTime("2019-12-31T00:00:00-00:00")`},
		{`absTime("20200102 030405 +0100")`, `absTime("2020-01-02T03:04:05+01:00")`},
		{`relTime(absTime("1970-01-02Z"))`, `relTime("1+00:00:00")`},
		{`absTime(relTime(60), 3600)`, `absTime("1970-01-01T01:01:00+01:00")`}, {`string(relTime(3.7))`, `"03"`},
		{`{ - 3, -3 }`, `{  -3,-3 }`},
		{`-9223372036854775808 / -1`, `9223372036854775807`}, {`-8 >> -1`, `-8`},
		{`regexps("(a)(b)?", "a", "\\2")`, `error`}, {`f(1; 2) =?= error`, `true`},
		{`formatTime([ Year = 2021; Month = 13; Day = 40 ], "%Y %m %d %b")`, `"2021 13 40 ?"`},
		{`formatTime(undefined)`, `error`},
		{`formatTime(0, "%-d %_3d %^a %10Y %s %Z")`, `"1   1 THU 0000001970 0 UTC"`},
		{`formatTime(0, "%U %W %V %G %C %w %u %s %D %F %T %Q")`,
			`"00 00 01 1970 19 4 4 0 01/01/70 1970-01-01 00:00:00 %Q"`},
	} {
		if got := evalText(t, test.src, nil, nil, nil); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
}

// TestContexts checks the scopes of functions on expressions: nested ads, lists, and the
// other ad.
func TestContexts(t *testing.T) {
	my := parseOrFail(t,
		`[ Require = Capability >= MinCapability; MinCapability = 5; a = 1; l = { a, b }; c = x + TARGET.y + a; d = l.z + x ]`)
	target := parseOrFail(t, `[ Gpus = { Gpu1, [ Capability = 6.5; a = 4 ] }; Gpu1 = [ Capability = 4; a = 3 ]; b = 2; l = { a }; a = 10; s = [ v = a; w = b ];
		text = "x" ]`)
	for _, test := range []struct{ src, want string }{
		{`countMatches(MY.Require, TARGET.Gpus)`, `1`}, {`countMatches(Require, Gpus)`, `1`},
		{`countMatches(Capability > 1 && a > 3, Gpus)`, `1`},
		{`evalInEachContext(Capability, TARGET.Gpus)`, `{ 4,6.500000000000000E+00 }`},
		{`evalInEachContext(MY.Require, { [ Capability = 9 ], undefined, 3 })`, `{ true,undefined,error }`},
		{`sum(TARGET.l)`, `1`}, {`TARGET.l[0]`, `10`}, {`sum(l)`, `3`}, {`TARGET.s.v`, `10`}, {`TARGET.s.w`, `2`},
		{`unparse(Require)`, `"Capability >= MinCapability"`}, {`unparse(nosuch)`, `""`}, {`unparse(MY.a)`, `""`},
		{`unparse(1)`, `error`},
		{`unparse(l)`, `"\n   {\n      a,\n      b\n   }"`}, {`unparse(s)`, `""`}, {`unresolved(c)`, `"x,y"`},
		{`unresolved(d)`, `""`}, {`unresolved(Require)`, `"Capability"`},
		{`unresolved(Require, "^cap")`, `true`}, {`unresolved(c, "q")`, `false`}, {`unresolved(nosuch)`, `undefined`},
		{`unresolved(TARGET.text)`, `""`},
	} {
		if got := evalText(t, test.src, my, target, nil); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
	alone := parseOrFail(t, `[ a = TARGET.x.y && MY.b && c; d = d + e; s = [ p = 1; q = { [ r = 2 ] } ] ]`)
	for _, test := range []struct{ src, want string }{
		{`unresolved(a)`, `"b,c,x.y"`}, {`unresolved(d)`, `""`},
		{`unparse(s)`,
			`"\n    [\n        p = 1; \n        q = \n           {\n              \n                  [\n                      r = 2\n                  ]\n           }\n    ]"`},
	} {
		if got := evalText(t, test.src, alone, nil, nil); got != test.want {
			t.Errorf("%s: got %s, want %s", test.src, got, test.want)
		}
	}
}

func TestMatch(t *testing.T) {
	machine := parseOrFail(t,
		`[ Memory = 64; Start = true; Requirements = Start && TARGET.RequestMemory <= Memory; Rank = TARGET.Prio ]`)
	for _, test := range []struct {
		job         string
		matched     bool
		left, right string
		rank        float64
	}{
		{`[ RequestMemory = 32; Requirements = Memory >= MY.RequestMemory; Rank = Memory * 2; Prio = 1.5 ]`, true,
			"true", "true", 128},
		{`[ RequestMemory = 65; Requirements = true; Rank = 1 ]`, false, "true", "false", 0},
		{`[ RequestMemory = 32; Requirements = TARGET.Gpus > 0 ]`, false, "undefined", "true", 0},
		{`[ RequestMemory = 32; Requirements = "yes" ]`, false, `"yes"`, "true", 0},
		{`[ RequestMemory = 32; Requirements = 7 ]`, true, "7", "true", 0},
		{`[ ]`, false, "undefined", "undefined", 0},
	} {
		r := Match(parseOrFail(t, test.job), machine, nil)
		if r.Matched != test.matched || r.Left.String() != test.left || r.Right.String() != test.right ||
			r.LeftRank != test.rank {
			t.Errorf("%s: got %+v (%s, %s)", test.job, r, r.Left, r.Right)
		}
	}
}
