package classad

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{`[]`, "[]\n"},
		{` [ ;a=1;;'b c'= -x.y[2]+.z ; ] `, "[\n  a     = 1;\n  'b c' = -x.y[2] + .z;\n]\n"},
		{`a  is  (b)`, "a is (b)\n"},
		{`f ( 1,{ } ,{1},[ ],[a=1;])?x ? : 2:- ! ~1.50`, "f(1, {}, { 1 }, [], [ a = 1 ]) ? x ?: 2 : -!~1.50\n"},
		{`5 .a`, "5 .a\n"},
		{`"a" "b\n"=?='q'`, "\"a\" \"b\\n\" =?= 'q'\n"},
		{`[a=1].a`, "[ a = 1 ].a\n"},
		{`{[a=1;;b=2;]}`, "{ [ a = 1; b = 2 ] }\n"},
		{
			`[Memory=1; Requirements = TARGET.Memory >= RequestMemory && (TARGET.Arch == "X86_64" || TARGET.Arch == "aarch64") && TARGET.Disk>5]`,
			`[
  Memory       = 1;
  Requirements =
    TARGET.Memory >= RequestMemory &&
    (TARGET.Arch == "X86_64" || TARGET.Arch == "aarch64") &&
    TARGET.Disk > 5;
]
`,
		},
		{
			`[Gpus = {[Name="NVIDIA H100"; Memory=80000; Capability=9.0],[Name="NVIDIA A100"; Memory=40000; Capability=8.0]};
			  Rank = isUndefined(TARGET.Mips) ? stringListIMember(TARGET.Arch, "X86_64, aarch64, ppc64le, riscv64") : TARGET.Mips * 1000]`,
			`[
  Gpus = {
    [ Name = "NVIDIA H100"; Memory = 80000; Capability = 9.0 ],
    [ Name = "NVIDIA A100"; Memory = 40000; Capability = 8.0 ]
  };
  Rank =
    isUndefined(TARGET.Mips)
      ? stringListIMember(TARGET.Arch, "X86_64, aarch64, ppc64le, riscv64")
      : TARGET.Mips * 1000;
]
`,
		},
		{
			`(TARGET.Memory >= RequestMemory && TARGET.Disk >= RequestDisk && TARGET.Cpus >= RequestCpus) || regexps("^([a-z]*)[0-9]*$", TARGET.Machine, "\\1") == "n" && TARGET.Slow =!= true`,
			`(
  TARGET.Memory >= RequestMemory &&
  TARGET.Disk >= RequestDisk &&
  TARGET.Cpus >= RequestCpus
) ||
regexps("^([a-z]*)[0-9]*$", TARGET.Machine, "\\1") == "n" &&
  TARGET.Slow =!= true
`,
		},
	} {
		got, commented, err := Format(test.src)
		if err != nil || got != test.want || commented {
			t.Errorf("%s\n got %s\nwant %s (%v)", test.src, got, test.want, err)
		}
	}
}

func TestFormatComments(t *testing.T) {
	for src, want := range map[string]bool{
		"a // b": true, "/* c */ a": true, "a /* */ / b": true, "a ? /* c */ : b": true, "[ a = 1; // x\n ]": true,
		"a/b": false, `"//"`: false, "a ?\n: b": false,
	} {
		if _, commented, err := Format(src); err != nil || commented != want {
			t.Errorf("%s: got %v (%v), want %v", src, commented, err, want)
		}
	}
	if _, commented, err := FormatOld("a = 1\n# b\n"); err != nil || !commented {
		t.Errorf("a comment in old syntax was not seen (%v)", err)
	}
}

func TestFormatOld(t *testing.T) {
	got, _, err := FormatOld("\n\nA=1\n  Requirements=TARGET.x=?=MY.y&&\"a\\\"b\" != \"c\\\"\n\n\n'b c' = { 1 ,2}")
	want := "A            = 1\nRequirements = TARGET.x =?= MY.y && \"a\\\"b\" != \"c\\\"\n\n'b c' = { 1, 2 }\n"
	if err != nil || got != want {
		t.Errorf("got %s\nwant %s (%v)", got, want, err)
	}
	if _, _, err := FormatOld("a = \n"); err == nil {
		t.Error("what is wrong was formatted")
	}
}

// checkFormat checks that formatting a text preserves its meaning, and that formatting
// the result again changes nothing.
func checkFormat(t *testing.T, src string) {
	t.Helper()
	var want string
	if ad, err := Parse(src); err == nil {
		want = ad.String()
	} else if e, err := ParseExpr(src); err == nil {
		want = e.String()
	} else {
		if _, _, err := Format(src); err == nil {
			t.Fatalf("%q does not parse, but can be formatted", src)
		}
		return
	}
	text, _, err := Format(src)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	got := ""
	if ad, err := Parse(text); err == nil {
		got = ad.String()
	} else if e, err := ParseExpr(text); err == nil {
		got = e.String()
	}
	if got != want {
		t.Fatalf("%q\nformatted %s\n got %s\nwant %s", src, text, got, want)
	}
	if again, commented, err := Format(text); again != text || commented || err != nil {
		t.Fatalf("%q\n once %s\ntwice %s (%v, %v)", src, text, again, commented, err)
	}
}

func checkFormatOld(t *testing.T, src string) {
	t.Helper()
	ad, err := ParseOld(src)
	if err != nil {
		return
	}
	text, _, err := FormatOld(src)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	again, err := ParseOld(text)
	if err != nil || again.String() != ad.String() {
		t.Fatalf("%q\nformatted %s\n got %v\nwant %s (%v)", src, text, again, ad, err)
	}
	if twice, _, err := FormatOld(text); err != nil || twice != text {
		t.Fatalf("%q\n once %s\ntwice %s (%v)", src, text, twice, err)
	}
}

// TestFormatVectors formats the expressions of the tables, and random conditions made of
// them.
func TestFormatVectors(t *testing.T) {
	var exprs []string
	for _, row := range readTable(t, "vectors.tsv.gz") {
		checkFormat(t, row[0])
		checkFormat(t, row[1])
		if _, err := ParseExpr(row[1]); err == nil && !strings.Contains(row[1], "//") {
			exprs = append(exprs, row[1])
			checkFormatOld(t, "A = "+row[1])
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	var long func(depth int) string
	long = func(depth int) string {
		if depth == 0 {
			return exprs[random.IntN(len(exprs))]
		}
		a, b := long(depth-1), long(random.IntN(depth))
		switch random.IntN(8) {
		case 0:
			return "[ x = " + a + "; Requirements = " + b + " ]"
		case 1:
			return "{ " + a + ", " + b + " }"
		case 2:
			return "strcat(" + a + ", " + b + ")"
		case 3:
			return "(" + a + ") ? (" + b + ") : " + a
		case 4:
			return "((" + a + ") || (" + b + "))"
		}
		return "(" + a + ") && (" + b + ")"
	}
	for range 3000 {
		checkFormat(t, long(random.IntN(6)))
	}
}

func FuzzFormat(f *testing.F) {
	f.Add("[ a = 1; b = { c.d[e], -f(g) ?: 'h i' } ]")
	f.Add("A = \"x\\\"\nB = 1 // c")
	f.Add("[ a = " + strings.Repeat("(b && c) || ", 20) + "d ? e : [ f = \"g\" \"h\" ] ]")
	f.Fuzz(func(t *testing.T, src string) {
		checkFormat(t, src)
		checkFormatOld(t, src)
	})
}
