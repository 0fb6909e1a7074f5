package classad

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// nestedText returns the text opening n times, middle, and closing n times.
func nestedText(n int, open, middle, closing string) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
}

// hostileTexts returns texts that an attacker could send.
func hostileTexts() map[string]string {
	const deep, long = 100_000, 1 << 20
	noise := make([]byte, long)
	for i := range noise {
		noise[i] = byte(i * 7919 >> 3)
	}
	return map[string]string{
		"parentheses":       nestedText(deep, "(", "1", ")"),
		"lists":             nestedText(deep, "{", "1", "}"),
		"ads":               nestedText(deep, "[a=", "1", "]"),
		"calls":             nestedText(deep, "f(", "1", ")"),
		"subscripts":        nestedText(deep, "a[", "1", "]"),
		"signs":             nestedText(deep, "-", "1", ""),
		"nots":              nestedText(deep, "!", "a", ""),
		"spaced signs":      nestedText(deep, "- ", "1", ""),
		"conditions":        nestedText(deep, "a ? ", "1", " : 2"),
		"other conditions":  nestedText(deep, "a ? 1 : ", "2", ""),
		"elvis":             nestedText(deep, "a ?: ", "2", ""),
		"powers":            nestedText(deep, "a || b && c | ", "1", ""),
		"selections":        "a" + nestedText(deep, ".a", "", ""),
		"lists of lists":    nestedText(1_000_000, "{},", "", "") + "{}",
		"half open":         nestedText(long, "(", "", ""),
		"half closed":       nestedText(long, ")", "", ""),
		"mixed brackets":    nestedText(deep, "([{", "", ")]}"),
		"half a string":     `"` + strings.Repeat("x", long),
		"half a name":       `'` + strings.Repeat("x", long),
		"half a comment":    "1 /*" + strings.Repeat("*", long),
		"backslashes":       `"` + strings.Repeat(`\`, long),
		"a long string":     `"` + strings.Repeat(`\101`, long/4) + `"`,
		"many strings":      strings.Repeat(`"a" `, long/4),
		"a long name":       strings.Repeat("n", long),
		"a long number":     strings.Repeat("9", long),
		"a long fraction":   "0." + strings.Repeat("9", long),
		"a long exponent":   "1e" + strings.Repeat("9", long),
		"blanks":            strings.Repeat(" ", long),
		"noise":             string(noise),
		"zeros":             strings.Repeat("\x00", long),
		"signs of nothing":  strings.Repeat("=!<>?&|^~%", long/10),
		"many attributes":   "[" + strings.Repeat("a=1;", long/4) + "]",
		"many arguments":    "strcat(" + strings.Repeat("1,", long/2) + "1)",
		"too long":          strings.Repeat("1+", MaxBytes/2) + "1",
		"cut":               `[ a = { 1, [ b = "x`,
		"JSON lists":        nestedText(deep, "[", "1", "]"),
		"JSON objects":      nestedText(deep, `{"a":`, "1", "}"),
		"JSON expressions":  `{"a":"/Expr(` + nestedText(deep, "(", "1", ")") + `)/"}`,
		"JSON noise":        `{"a":` + string(noise),
		"a long time":       `absTime("` + strings.Repeat("1", long) + `")`,
		"a long span":       `relTime("` + strings.Repeat("1:", long/2) + `")`,
		"a pattern":         `regexp("` + strings.Repeat("(a|b)*", 5_000) + `", "ab")`,
		"a repeated repeat": `regexp("((((((a{10}){10}){10}){10}){10}){10}", "a")`,
		"many patterns":     strings.Repeat(`regexp("a{1000}b{900}", "a") || `, 1000) + "true",
	}
}

// TestHostileTexts reads hostile texts in all syntaxes, and evaluates the valid ones.
func TestHostileTexts(t *testing.T) {
	for name, src := range hostileTexts() {
		runBounded(t, name, func() {
			if e, err := ParseExpr(src); err == nil {
				_ = e.String()
				_ = Eval(e, nil, nil, nil).String()
			}
			_, _ = Parse(src)
			_, _ = ParseOld("A = " + src)
			var ad Ad
			_ = json.Unmarshal([]byte(src), &ad)
		})
	}
}

// runBounded runs f, which must end because evaluations and parses are bounded, and
// reports an error if it took long.
func runBounded(t *testing.T, name string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d > 100*time.Millisecond {
		t.Logf("%s took %v", name, d)
	}
}

// TestHostileEvaluations evaluates small ads whose values could become huge;
// TestEvalBounds has more.
func TestHostileEvaluations(t *testing.T) {
	const head = `[ s = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; l = { l, l }; m = { m[0] }; self = [ self = self ]; n = { 1, 2, 3, 4, 5, 6, 7, 8 }; `
	chain := func(last, step string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range 40 {
			fmt.Fprintf(&b, "x%d = %s; ", i, strings.ReplaceAll(step, "@", fmt.Sprintf("x%d", i+1)))
		}
		return b.String() + "x40 = " + last + " ]"
	}
	long := func(n int, piece string) string { return strings.Repeat(piece, n/len(piece)) }
	tests := map[string]string{
		"conditions": chain("true && true", "@ ? @ : @"),
		"joined":     chain(`{ "a", "b" }`, `join("x", @, @, @)`),
		"lists":      chain("{ 1, 2 }", "{ @, @ }[0]"),
		"shared strings": `[ s = "` + long(4<<20, "a") + `"; r = [ x = s ]; d = { ` + strings.Repeat("r,", 2000) +
			` r }; x0 = size(string(d.x)) ]`,
		"shared lists": `[ l = { ` + long(1<<20, "1,") + ` 1 }; r = [ x = l ]; d = { ` + strings.Repeat("r,", 2000) +
			` r }; x0 = d.x ]`,
		"joined shares": `[ s = "` + long(4<<20, "a") + `"; r = [ x = s ]; d = { ` + strings.Repeat("r,", 2000) +
			` r }; x0 = join(",", d.x) ]`,
		"printed lists":   chain("{ 1, 2 }", "eval(string({ @, @ }))"),
		"contexts":        chain("{ 1 }", "evalInEachContext(@, { [], [] })"),
		"own contexts":    head + `x0 = evalInEachContext(x0, { [], [ x0 = x0 ] }) ]`,
		"nested contexts": head + `x0 = countMatches(countMatches(countMatches(x0, n), { [], [] }), { [], [] }) ]`,
		"projections":     chain("{ [ a = { [ a = 1 ] } ] }", "{ @, @ }.a"),
		"grown patterns":  chain(`"a"`, `regexps("(.*)", @, "\\1\\1")`),
		"evaluated":       chain(`"1"`, `string(eval(strcat(@, "+", @)))`),
		"unparsed":        chain(`1`, `unparse(@)`),
		"a list of lists": head + `x0 = l.a ]`,
		"own element":     head + `x0 = m[0] ]`,
		"own selection":   head + `x0 = self.self.self.self.self ]`,
		"own text":        head + `x0 = eval("x0") ]`,
		"own unresolved":  head + `x0 = unresolved(x1); x1 = x1 + x2; x2 = x1 + x3 ]`,
		"members":         head + `x0 = member(1, l) || member(l, n) || identicalMember(n, n) ]`,
		"sorted":          head + `x0 = max(l) + sum(l) + avg(l) ]`,
		"reaching":        `[ x0 = size(regexps("a(.*b)?", "` + long(64<<10, "a") + `", "x", "g")) ]`,
		"many groups":     `[ x0 = size(replaceAll("` + long(3000, "()") + `a", "` + long(1<<20, "a") + `", "x")) ]`,
		"no matches":      `[ x0 = regexp("(a*)*(a*)*(a*)*b", "` + long(1<<20, "a") + `") ]`,
		"repetition":      `[ x0 = regexp("(((a{0,30}){0,30}){0,30}){0,30}", "a") ]`,
		"long lists": `[ a = "` + long(1<<20, "a,") + `"; b = "` + long(1<<20, "b c,") +
			`"; x0 = stringListsIntersect(a, b) || stringListMember("c", a) ]`,
		"long subsets": `[ a = "` + long(1<<20, "a1,b2,c,") + `"; x0 = stringListISubsetMatch(a, a) ]`,
		"long sums": `[ a = "` + long(1<<20, "1 ") +
			`"; x0 = stringListSum(a) + stringListMax(a) + stringListSize(a) ]`,
		"long members":  `[ a = "` + long(1<<20, "x y ") + `"; x0 = stringList_regexpMember("z+", a) ]`,
		"long splits":   `[ a = "` + long(1<<20, ",") + `"; x0 = size(split(a)) ]`,
		"long words":    `[ a = "` + long(1<<20, "a b ") + `"; x0 = argsToList(a) ]`,
		"long merges":   `[ a = "` + long(1<<20, "a=b ") + `"; x0 = mergeEnvironment(a, a, a) ]`,
		"long versions": `[ a = "` + long(1<<20, "1") + `"; b = strcat(a, "2"); x0 = versionCmp(a, b) ]`,
		"long formats":  `[ a = "` + long(1<<20, "%c%1000d") + `"; x0 = formatTime(0, a) ]`,
		"long case":     `[ a = "` + long(1<<20, "aB") + `"; x0 = toUpper(toLower(a)) == a ]`,
		"huge numbers":  `[ x0 = { 9223372036854775807 + 1, 1e308 * 1e308, pow(1e308, 1e308), pow(-1e308, 3), 1 << 1000000, quantize(9223372036854775807, 10), interval(9223372036854775807), absTime(9223372036854775807), formatTime(9223372036854775807), splitTime(-9223372036854775807), substr("a", 9223372036854775807, -9223372036854775807), relTime(1e300), string(1e-320), int(1e308) }; a = x0[0] ]`,
	}
	for name, src := range tests {
		ad, err := Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runBounded(t, name, func() {
				v := ad.Eval("x0", nil)
				if s := v.String(); len(s) > 16*MaxBytes {
					t.Errorf("%s: a value of %d bytes", name, len(s))
				}
				v.Elements(nil)
				_ = v.Identity()
				_ = v.Reason()
				if _, err := json.Marshal(ad); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				_ = ad.Old()
			})
		})
	}
}
