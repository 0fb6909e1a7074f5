package classad

import (
	"strings"
	"testing"
)

func TestReason(t *testing.T) {
	ad := parseOrFail(t,
		`[ a = b + 1; b = size(3); l = { 1, "x" }; s = "text"; deep = f1; loop = loop2 + 1; text = strcat(l, l) ]`)
	for _, test := range []struct{ src, want string }{
		{`1 + 1`, ``}, {`error`, ``}, {`nosuch`, ``},
		{`"a" + 1`, `+ does not take a string and an integer, but numbers and some times`},
		{`1 < "a"`, `< does not take an integer and a string, but numbers, two strings or two times of a kind`},
		{`1 & true`, `& does not take an integer and a boolean, but integers`},
		{`2.5 % 2`, `% does not take a real and a real, but integers`},
		{`"x" && true`, `&& does not take a string and a boolean, but true, false and numbers`},
		{`true || {}`, ``}, {`false || {}`, `|| does not take a boolean and a list, but true, false and numbers`},
		{`!"x"`, `! does not take a string, but true, false and numbers`},
		{`-"x"`, `- does not take a string, but numbers and some times`},
		{`{} =?= {}`, `=?= does not take a list and a list, but everything except two lists or two ads`},
		{`5 / 0`, `division by zero`}, {`5 % (1 - 1)`, `division by zero`},
		{`1e308 * 10`, `the result is too large for a real`},
		{`"a" ? 1 : 2`, `a condition is a string, not true, false or a number`},
		{`ifThenElse({}, 1, 2)`, `a condition is a list, not true, false or a number`},
		{`l[7]`, `a list of 2 elements has none at 7; the first is at 0`},
		{`l["x"]`, `a list has no element by a string; lists take an integer and ads a string`},
		{`l[-1]`, `a list of 2 elements has none at -1; the first is at 0`},
		{`s.x`, `a string has no attributes`}, {`noSuch(1)`, `there is no function noSuch`},
		{`strcmp("a")`, `strcmp does not take 1 argument, but 2`}, {`SIZE()`, `SIZE does not take 0 arguments, but 1`},
		{`substr("a", 1, 2, 3)`, `substr does not take 4 arguments, but 2 or 3`},
		{`userMap(1)`, `userMap does not take 1 argument, but 2 to 4`},
		{`floor("x")`, `floor: argument 1 is not a text that it can read`},
		{`floor({})`, `floor: argument 1 is a list`},
		{`round(undefined)`, `round: argument 1 is undefined`}, {`substr("a", "b")`, `substr: argument 2 is a string`},
		{`int("x")`, `int: argument 1 is not a text that it can read`},
		{`int(real("NaN"))`, `int: what is infinite or not a number is no integer and no time`},
		{`sum(l)`, `sum: the list in argument 1 holds a string`},
		{`stringListSum("1,x")`, `stringListSum: argument 1 is not a text that it can read`},
		{`evalInEachContext(1, { 2 })[0]`, `evalInEachContext: the list in argument 2 holds an integer`},
		{`relTime(60) / 0`, `division by zero`},
		{`getYear(3)`, `getYear: argument 1 is an integer`},
		{`absTime(strcat("never"))`, `absTime: argument 1 is not a text that it can read`},
		{`regexp("(a", "a")`, "the regular expression is wrong: missing closing ): (a"},
		{`regexp("(a)\\1", "aa")`,
			`regular expressions are RE2's, which have no back-references such as \1; compare the parts with == after taking them out with regexps()`},
		{`regexp("a(?=b)", "ab")`,
			`regular expressions are RE2's, which have no look-around, atomic groups or possessive repetition; join two regexp() with && or && !`},
		{`regexp("a{2000}", "ab")`, `the regular expression repeats too much: it has more than 20000 instructions`},
		{`regexps("a", "a", "\\3")`,
			`the replacement names a group that the regular expression does not have or that did not match`},
		{`eval("1 +")`, `eval: classad: line 1, column 4: expected an expression, but the text ends here`},
		{`random()`, `random: this evaluation has no source of random numbers`},
		{`a`, `size: argument 1 is an integer`}, // the first cause remains
		{`error + 5 / 0`, ``}, {`5 / 0 + error`, `division by zero`}, {`undefined + 5 / 0`, `division by zero`},
		{`strcat("x", join(",", toUpper(5 / 0)))`, `division by zero`}, {`{ 5 / 0 }[0]`, `division by zero`},
		{`(5 / 0).x`, `division by zero`},
		{`versionGT(5 / 0, "1")`, `division by zero`}, {`member(1, 5 / 0)`, `division by zero`},
		{`max({ 5 / 0 })`, `division by zero`},
		{`regexp("a", 5 / 0)`, `division by zero`}, {`stringListMember("a", 5 / 0)`, `division by zero`},
		{`splitTime(5 / 0)`, `division by zero`},
		{`interval(5 / 0)`, `division by zero`}, {`ifThenElse(5 / 0, 1, 2)`, `division by zero`},
		{`(5 / 0) ?: 1`, `division by zero`},
		{`formatTime(0, 5 / 0)`, `division by zero`}, {`listToArgs({ 5 / 0 })`, `division by zero`},
		{`allCompare("<", { 5 / 0 }, 1)`, `division by zero`},
	} {
		e, err := ParseExpr(test.src)
		if err != nil {
			t.Fatalf("%s: %v", test.src, err)
		}
		v := Eval(e, ad, nil, nil)
		if got := v.Reason(); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.src, got, test.want)
		}
		if v.IsError() && (v.String() != "error" || v.Identity() != ErrorValue().Identity()) {
			t.Errorf("%s: the reason shows in %s or its identity", test.src, v)
		}
	}
	if got := evalText(t, `(5 / 0) =?= error && (5 / 0) =?= size(1) && !((5 / 0) =!= noSuch())`, nil, nil,
		nil); got != "true" {
		t.Errorf("errors for several reasons are not identical: %s", got)
	}
}

// TestReasonOfBounds checks that an evaluation that exceeds a bound names the bound.
func TestReasonOfBounds(t *testing.T) {
	doubling := func(first, step string) *Ad {
		ad := New()
		for i := range 60 {
			src := first
			if i > 0 {
				src = strings.ReplaceAll(step, "@", "a"+string(rune('0'+(i-1)/10))+string(rune('0'+(i-1)%10)))
			}
			if err := ad.SetExpr("a"+string(rune('0'+i/10))+string(rune('0'+i%10)), src); err != nil {
				t.Fatal(err)
			}
		}
		return ad
	}
	for _, test := range []struct{ first, step, want string }{
		{`1 + 0`, `@ + @`, `too many steps`},
		{`"xy"`, `strcat(@, @)`, `bytes of strings and lists`},
		{`{ 1 }`, `evalInEachContext(@, { [], [] })`, `bytes of strings and lists`},
	} {
		if got := doubling(test.first, test.step).Eval("a59", nil).Reason(); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", test.step, got)
		}
	}
	ad := parseOrFail(t, `[ l = { l[0] }; a = l[0] ]`)
	if got := ad.Eval("a", nil).Reason(); !strings.Contains(got, "deeper than") {
		t.Errorf("an endless list: %q", got)
	}
}
