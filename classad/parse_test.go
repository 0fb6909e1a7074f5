package classad

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestParseExprPrints(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{`a+b*c`, `a + b * c`},
		{`(a+b)*c`, `(a + b) * c`},
		{`a =?= UNDEFINED`, `a is undefined`},
		{`a isnt 2`, `a isnt 2`},
		{`"a" "b\"\n\101"`, `"ab\"\nA"`},
		{`.5 + 1e3`, `5.000000000000000E-01 + 1.000000000000000E+03`},
		{`-9223372036854775808`, `-9223372036854775808`},
		{`--91`, ` --91`},
		{`!a&&~b`, ` !a &&  ~b`},
		{`a ? b : c ? d : e`, `a ? b : c ? d : e`},
		{`a ?: b + 1`, `a ?: b + 1`},
		{`{1,{},[x=1;;y={2}]}`, `{ 1,{  },[ x = 1; y = { 2 } ] }`},
		{`a.b['c d'].e.'f g'`, `a.b['c d'].e.'f g'`},
		{`.a // the root`, `.a`},
		{`f( 1 , g() ) /* two */`, `f(1,g())`},
		{`absTime("2020-01-02T03:04:05+01:00")`, `absTime("2020-01-02T03:04:05+01:00")`},
		{`relTime("1d2h3m4.5s")`, `relTime("1+02:03:4.5")`},
	} {
		e, err := ParseExpr(test.src)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
			continue
		}
		if got := e.String(); got != test.want {
			t.Errorf("%s: printed %s, want %s", test.src, got, test.want)
		}
		again, err := ParseExpr(e.String())
		if err != nil || again.String() != e.String() {
			t.Errorf("%s: printed %s, which reads as %s, %v", test.src, e, again, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, test := range []struct {
		src          string
		line, column int
		msg          string
	}{
		{``, 1, 1, "the text ends here"},
		{`a +`, 1, 4, "the text ends here"},
		{`a + * b`, 1, 5, "an operand is missing before *"},
		{"a &&\n  )", 2, 3, "expected an expression, not )"},
		{`(1`, 1, 3, "expected ), but the text ends here"},
		{`[a = 1`, 1, 7, "expected ; or ]"},
		{`[a = 1 b = 2]`, 1, 8, "expected ; or ]"},
		{`[a]`, 1, 3, "expected ="},
		{`{1,}`, 1, 4, "expected an expression"},
		{`a b`, 1, 3, "more than one expression"},
		{`"ü" $`, 1, 5, "no meaning"},
		{`"abc`, 1, 1, "not closed"},
		{`"\0"`, 1, 2, "zero byte"},
		{`1 /* x`, 1, 3, "comment is not closed"},
		{`010`, 1, 1, "must not start with 0"},
		{`0x1F`, 1, 1, "must not end in a letter"},
		{`1.`, 1, 1, "digit after its point"},
		{`9223372036854775808`, 1, 1, "64 bits"},
		{`1e`, 1, 1, "exponent"},
		{`a.true`, 1, 3, "expected a name"},
		{`relTime("abc")`, 1, 15, "not a relative time"},
	} {
		_, err := ParseExpr(test.src)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: error %v, want a SyntaxError", test.src, err)
			continue
		}
		if syntax.Line != test.line || syntax.Column != test.column || !strings.Contains(syntax.Msg, test.msg) {
			t.Errorf("%q: got %v, want line %d, column %d: …%s…", test.src, err, test.line, test.column, test.msg)
		}
	}
}

// TestParseBounds checks that hostile texts give an error or a value at once, and do not
// crash.
func TestParseBounds(t *testing.T) {
	const deep = 100_000
	for name, src := range map[string]string{
		"parentheses": strings.Repeat("(", deep) + "1" + strings.Repeat(")", deep),
		"unclosed":    strings.Repeat("(", deep),
		"lists":       strings.Repeat("{", deep),
		"ads":         strings.Repeat("[a=", deep),
		"signs":       strings.Repeat("-", deep) + "1",
		"nots":        strings.Repeat("!", deep) + "a",
		"ternaries":   strings.Repeat("a?", deep),
		"else":        strings.Repeat("a?1:", deep) + "2",
		"elvis":       strings.Repeat("a?:", deep) + "2",
		"sums":        strings.Repeat("1+", deep) + "1",
		"selections":  "a" + strings.Repeat(".a", deep),
		"subscripts":  "a" + strings.Repeat("[0]", deep),
		"calls":       strings.Repeat("f(", deep),
		"size":        `"` + strings.Repeat("x", MaxBytes) + `"`,
		"binary":      "\x00\xff\x80",
	} {
		if _, err := ParseExpr(src); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := ParseExpr(strings.Repeat("1+", 4000) + "1"); err != nil {
		t.Errorf("a sum of 4,001 numbers: %v", err)
	}
}

func TestParseAd(t *testing.T) {
	ad, err := Parse(` [ A = 1; b = "x";; a = A2 ; 'true' = 3 ] `)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ad.String(), `[ A = A2; b = "x"; 'true' = 3 ]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, src := range []string{``, `a = 1`, `{}`, `[] []`, `[a=1;] x`, `["a"=1]`} {
		if ad, err := Parse(src); err == nil || ad != nil {
			t.Errorf("%q: got %v, want an error", src, ad)
		}
	}
}

func TestParseOld(t *testing.T) {
	src := "# a machine\n\nName = \"C:\\dir\\\"quoted\\\"\"\r\nMemory = 1.5\nRequirements = TARGET.x =?= 3\n  Path " +
		"= \"C:\\dir\\\"\n"
	ad, err := ParseOld(src)
	if err != nil {
		t.Fatal(err)
	}
	want := "Name = \"C:\\dir\\\"quoted\\\"\"\nMemory = 1.5\nRequirements = TARGET.x =?= 3\nPath = \"C:\\dir\\\"\n"
	if got := ad.Old(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if s, _ := ad.Str("path"); s != `C:\dir\` {
		t.Errorf("Path is %s", s)
	}
	var syntax *SyntaxError
	if _, err := ParseOld("A = 1\n  B = (2\n"); !errors.As(err, &syntax) || syntax.Line != 2 || syntax.Column != 9 {
		t.Errorf("got %v, want an error at line 2, column 9", err)
	}
}
