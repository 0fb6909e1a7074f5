package classad

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestAdAgainstOracle makes the same random changes to an Ad and to a plain list of names
// and values.
func TestAdAgainstOracle(t *testing.T) {
	type pair struct {
		name  string
		value int64
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		ad, oracle := New(), []pair(nil)
		find := func(name string) int {
			return slices.IndexFunc(oracle, func(p pair) bool { return strings.EqualFold(p.name, name) })
		}
		for range 300 {
			name := fmt.Sprintf("%c%d", "aAbB"[rng.IntN(4)], rng.IntN(30))
			i, value := find(name), rng.Int64N(1000)
			switch rng.IntN(6) {
			case 0:
				if got := ad.Delete(name); got != (i >= 0) {
					t.Fatalf("Delete(%s) is %v", name, got)
				}
				if i >= 0 {
					oracle = slices.Delete(oracle, i, i+1)
				}
			case 1:
				ad = ad.Copy()
			default:
				ad.SetInt(name, value)
				if i >= 0 {
					oracle[i].value = value
				} else {
					oracle = append(oracle, pair{name, value})
				}
			}
			checkAd(t, ad)
		}
		var names []string
		for _, p := range oracle {
			names = append(names, p.name)
			if got, ok := ad.Int(strings.ToUpper(p.name)); !ok || got != p.value {
				t.Fatalf("%s is %d, %v; want %d", p.name, got, ok, p.value)
			}
		}
		if got := ad.Names(); !slices.Equal(got, names) || ad.Len() != len(names) {
			t.Fatalf("got %v, want %v", got, names)
		}
	}
}

// checkAd checks the invariants of an ad: the lookup of each name finds its own index.
func checkAd(t *testing.T, ad *Ad) {
	t.Helper()
	for i := range ad.labels {
		if got := ad.labelIndex(hashName(ad.labels[i].name), ad.labels[i].name); got != i {
			t.Fatalf("%s is found at %d, and stands at %d", ad.labels[i].name, got, i)
		}
	}
}

func TestCopyIsApart(t *testing.T) {
	a := parseOrFail(t, `[ a = 1; b = 2 ]`)
	b := a.Copy()
	b.SetInt("a", 5)
	b.SetInt("c", 6)
	a.SetAd("sub", b)
	b.Delete("b")
	if got, want := a.String(), `[ a = 1; b = 2; sub = [ a = 5; b = 2; c = 6 ] ]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSetAndGet(t *testing.T) {
	ad := New()
	ad.SetInt("i", -3)
	ad.SetReal("r", 2.75)
	ad.SetBool("b", true)
	ad.SetString("s", "it's \"quoted\"\n")
	ad.SetStrings("l", []string{"a", "b c"})
	ad.SetValue("v", ListValue(IntValue(1), UndefinedValue()))
	if err := ad.SetExpr("e", `i * -2`); err != nil {
		t.Fatal(err)
	}
	if err := ad.SetExpr("e", `i *`); !errors.Is(err, roost.Invalid) {
		t.Errorf("a broken expression: got %v", err)
	}
	const want = `[ i = -3; r = 2.750000000000000E+00; b = true; s = "it's \"quoted\"\n"; l = { "a","b c" }; v = { 1,undefined }; e = i * -2 ]`
	if got := ad.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n, ok := ad.Int("e"); !ok || n != 6 {
		t.Errorf("e is %d, %v", n, ok)
	}
	if list, ok := ad.Strings("L"); !ok || !slices.Equal(list, []string{"a", "b c"}) {
		t.Errorf("l is %q, %v", list, ok)
	}
	if _, ok := ad.Strings("v"); ok {
		t.Error("v counts as strings")
	}
	if f, ok := ad.Real("i"); !ok || f != -3 {
		t.Errorf("i as a real is %g, %v", f, ok)
	}
	if _, ok := ad.Str("i"); ok {
		t.Error("i counts as a string")
	}
	if _, ok := ad.Bool("nosuch"); ok {
		t.Error("a missing attribute counts as a boolean")
	}
}

func TestIdentity(t *testing.T) {
	values := []Value{UndefinedValue(), ErrorValue(), BoolValue(true), IntValue(1), RealValue(1), StringValue("a"),
		StringValue("A"),
		AbsTimeValue(1, 0), RelTimeValue(1), ListValue(IntValue(1)), ListValue(IntValue(2))}
	if RealValue(math.Copysign(0, -1)).Identity() != RealValue(0).Identity() {
		t.Error("0.0 and -0.0 are not identical")
	}
	for i, v := range values {
		for j, w := range values {
			if (v.Identity() == w.Identity()) != (i == j) {
				t.Errorf("%s and %s: identical is %v", v, w, i != j)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	ad := parseOrFail(t,
		`[ i = 1; r = 2.0; big = 1e300; s = "ü\n"; odd = "/Expr(x)/"; t = true; u = undefined; e = error; l = { 1, x + 1 }; `+
			`sub = [ a = "b" ]; q = MY.x && y =?= 2; nan = real("NaN"); 'a b' = 1 ]`)
	text, err := json.Marshal(ad)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"i":1,"r":2.0,"big":1E+300,"s":"ü\n","odd":"\/Expr(\"/Expr(x)/\")\/","t":true,"u":null,"e":"\/Expr(error)\/",` +
		`"l":[1,"\/Expr(x + 1)\/"],"sub":{"a":"b"},"q":"\/Expr(MY.x \u0026\u0026 y is 2)\/","nan":"\/Expr(real(\"NaN\"))\/","a b":1}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var back Ad
	if err := json.Unmarshal(text, &back); err != nil || back.String() != ad.String() {
		t.Errorf("came back as %s, %v", &back, err)
	}
	for _, bad := range []string{`[]`, `3`, `{"a":"/Expr(1 +)/"}`, `{"":1}`, `{"a":99999999999999999999}`,
		`{"a":"\u0000"}`} {
		if err := json.Unmarshal([]byte(bad), &back); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: got %v, want an invalid request", bad, err)
		}
	}
}

func TestConjunctsAndReferences(t *testing.T) {
	e, err := ParseExpr(
		`(TARGET.Memory >= RequestMemory && (MY.x || self.Y)) && Arch == "X" && !(a && b) && other.memory < .z.q && f(list[k].m)`,
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range Conjuncts(e) {
		got = append(got, c.String())
	}
	want := []string{`TARGET.Memory >= RequestMemory`, `MY.x || self.Y`, `Arch == "X"`, ` !(a && b)`,
		`other.memory < .z.q`, `f(list[k].m)`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	my, target, unscoped := References(e)
	if fmt.Sprint(my, target, unscoped) != "[x Y z] [Memory] [a Arch b k list RequestMemory]" {
		t.Errorf("got %v %v %v", my, target, unscoped)
	}
}

// TestPrintBuilt checks that expressions built without a parser get the parentheses that
// they need.
func TestPrintBuilt(t *testing.T) {
	a, b := &attrRef{name: "a"}, &attrRef{name: "b"}
	for _, test := range []struct {
		n    exprNode
		want string
	}{
		{&binaryNode{opMultiply, &binaryNode{opAdd, a, b}, &binaryNode{opMultiply, a, b}}, `(a + b) * (a * b)`},
		{&unaryNode{opNot, &binaryNode{opAnd, a, b}}, ` !(a && b)`},
		{&selectionNode{x: &ternaryNode{a, a, b}, name: "c"}, `(a ? a : b).c`},
		{&ternaryNode{&ternaryNode{a, a, b}, a, b}, `(a ? a : b) ? a : b`},
	} {
		if got := (Expr{test.n}).String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
