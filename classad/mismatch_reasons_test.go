package classad

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// reasonText writes one line for each reason: side, attribute, conjunct, value, and the
// operands in brackets.
func reasonText(reasons []MismatchReason) string {
	var b strings.Builder
	for _, r := range reasons {
		fmt.Fprintf(&b, "%s %s: %s is %s [", r.Side, r.Attribute, r.Conjunct, r.Value)
		for i, o := range r.Operands {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s=%s", o.Expr, o.Value)
		}
		b.WriteString("]\n")
	}
	return b.String()
}

func TestReasons(t *testing.T) {
	for _, test := range []struct{ left, right, want string }{
		{`[ Requirements = TARGET.Memory >= RequestMemory && Arch == "X86_64"; RequestMemory = 8000 ]`,
			`[ Memory = 1000; Arch = "x86_64"; Requirements = true ]`,
			"left Requirements: TARGET.Memory >= RequestMemory is false [TARGET.Memory=1000, RequestMemory=8000]\n"},
		{`[ Requirements = true ]`, `[ Requirements = 1.5 ]`, ""},
		{`[]`, `[ Requirements = 0 ]`,
			"left Requirements: Requirements is undefined []\nright Requirements: 0 is 0 []\n"},
		{`[ Requirements = a && (b || TARGET.B) && "x" ]`, `[ Requirements = TARGET.a =?= 1 ]`,
			"left Requirements: a is undefined [a=undefined]\nleft Requirements: b || TARGET.B is undefined " +
				"[b=undefined, TARGET.B=undefined]\n" +
				"left Requirements: \"x\" is \"x\" []\nright Requirements: TARGET.a is 1 is false " +
				"[TARGET.a=undefined]\n"},
		{`[ Requirements = START && MY.Fits && true; Start = Load < 3 && Idle; Load = 4; Fits = TARGET.n < 3 ]`,
			`[ n = 5; Requirements = true ]`,
			"left Start: Load < 3 is false [Load=4]\nleft Start: Idle is undefined [Idle=undefined]\nleft Fits: " +
				"TARGET.n < 3 is false [TARGET.n=5]\n"},
		{`[ Requirements = x && a; x = Requirements && b; a = true ]`, `[ Requirements = true ]`,
			"left x: Requirements is undefined [Requirements=undefined]\nleft x: b is undefined [b=undefined]\n"},
		{`[ Requirements = Start; Start = false ]`, `[ Requirements = true ]`,
			"left Requirements: Start is false [Start=false]\n"},
		{`[ Requirements = gpu.Name == "A" && gpu.NAME == "B" && .gpu.m > 1 + gpu.M; gpu = [ Name = "C"; m = 2 ] ]`,
			`[ Requirements = true ]`,
			"left Requirements: gpu.Name == \"A\" is false [gpu.Name=\"C\"]\nleft Requirements: gpu.NAME == \"B\" " +
				"is false [gpu.NAME=\"C\"]\n" +
				"left Requirements: .gpu.m > 1 + gpu.M is false [.gpu.m=2, gpu.M=2]\n"},
		{`[ Requirements = countMatches(Memory > 5, TARGET.Gpus) >= n; n = 2 ]`,
			`[ Gpus = { [ Memory = 6 ], [ Memory = 5 ] }; Requirements = true ]`,
			"left Requirements: countMatches(Memory > 5,TARGET.Gpus) >= n is false [TARGET.Gpus={ [ Memory = 6 ],[ " +
				"Memory = 5 ] }, n=2]\n"},
	} {
		got := reasonText(Reasons(parseOrFail(t, test.left), parseOrFail(t, test.right), nil))
		if got != test.want {
			t.Errorf("%s\n%s\n got %s\nwant %s", test.left, test.right, got, test.want)
		}
	}
}

// TestReasonsOfNothing checks that missing ads count as empty.
func TestReasonsOfNothing(t *testing.T) {
	if got := len(Reasons(nil, nil, nil)); got != 2 {
		t.Errorf("got %d reasons, want one for each side", got)
	}
}

// TestReasonsAgree checks that there is a reason if and only if two ads do not match. The
// Requirements are random. No conjunct of a reason may be true.
func TestReasonsAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	atoms := []string{"true", "false", "1", "0.0", "undefined", "error", "a", "b", "c", "TARGET.a", "TARGET.b",
		"a < TARGET.b", `"x"`, "MY.c", "Requirements", "TARGET.Requirements"}
	var expr func(depth int) string
	expr = func(depth int) string {
		if depth == 0 || random.IntN(4) == 0 {
			return atoms[random.IntN(len(atoms))]
		}
		op := []string{" && ", " && ", " && ", " || ", " =?= "}[random.IntN(5)]
		text := expr(depth-1) + op + expr(depth-1)
		if random.IntN(2) == 0 {
			return "(" + text + ")"
		}
		return text
	}
	ad := func() *Ad {
		return parseOrFail(t, fmt.Sprintf("[ Requirements = %s; a = %s; b = %s; c = %s ]", expr(4), expr(1),
			expr(0), expr(2)))
	}
	matched := 0
	for range 5000 {
		left, right := ad(), ad()
		match, reasons := Match(left, right, nil), Reasons(left, right, nil)
		if match.Matched {
			matched++
		}
		if match.Matched != (len(reasons) == 0) {
			t.Fatalf("%s\n%s\nmatch: %v, but reasons:\n%s", left, right, match.Matched, reasonText(reasons))
		}
		for _, r := range reasons {
			if r.Value.IsTrue() {
				t.Fatalf("%s\n%s\n%s", left, right, reasonText(reasons))
			}
		}
	}
	if matched == 0 {
		t.Error("no two ads matched")
	}
}

// TestReasonsBound checks that many expensive conjuncts take no longer than the bounds of
// an evaluation allow.
func TestReasonsBound(t *testing.T) {
	heavy := "size(split(join(\",\", {" + strings.Repeat("1,", 2000) + "1}))) == 0"
	left := parseOrFail(t, "[ Requirements = "+strings.Repeat(heavy+" && ", 50)+"false ]")
	reasons := Reasons(left, New(), &EvalEnv{Steps: 10_000})
	if n := len(reasons); n < 2 || n > 40 || !reasons[n-2].Value.IsError() {
		t.Errorf("%d reasons", n)
	}
}
