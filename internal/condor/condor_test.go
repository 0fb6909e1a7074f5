package condor

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
)

func TestParseJobID(t *testing.T) {
	cases := map[string]string{"5": "5", "5.0": "5.0", "18446744073709551615.3": "18446744073709551615.3"}
	for _, text := range []string{"", "0", "0.1", "5.", ".5", "5.-1", "+5", "5_0", "5.0.0", "18446744073709551616",
		"5.4294967296", "ann"} {
		cases[text] = "-"
	}
	for text, want := range cases {
		got := "-"
		if id, ok := ParseJobID(text); ok {
			got = id.String()
		}
		if got != want {
			t.Errorf("ParseJobID(%q): got %s, want %s", text, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	words := []OptionWord{{"allusers", 2, 0}, {"autoformat", 5, UpToOption}, {"af", 2, UpToOption}, {"format", 1, 2},
		{"queue", 1, Rest}}
	for line, want := range map[string]string{
		"-af:jh A B -all 5":       "af(jh)[A B] allusers()[] | 5",
		"-autof A - 5":            "autoformat()[A] | 5",
		"--AllUsers -f %d A -":    "allusers()[] format()[%d A] | -",
		"x.sub -q 3 in (a b) -af": "queue()[3 in (a b) -af] | x.sub",
		"-format %d":              "-format requires 1 more argument(s)",
		"-a":                      "unrecognized argument -a",
		"-afx A":                  "unrecognized argument -afx",
	} {
		l, err := ParseCommandLine(strings.Fields(line), words)
		got := ""
		for _, o := range l.Options {
			got += o.Word + "(" + o.Letters + ")[" + strings.Join(o.Values, " ") + "] "
		}
		got += "| " + strings.Join(l.Operands, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// TestCheck holds which command lines and files do not go together.
func TestCheck(t *testing.T) {
	src := "executable = x\nqueue = 3\nfoo \\\nqueue 1\n# queue\n"
	for _, test := range []struct {
		line SubmitCommandLine
		src  string
		ok   bool
	}{
		{SubmitCommandLine{Macros: []string{"A=1", "+B=2"}, Appended: []string{"x = 1"}}, src + "Queue 2 in (a)\n",
			true},
		{SubmitCommandLine{}, src + "\tqueue", true},
		{SubmitCommandLine{}, src, false},
		{SubmitCommandLine{HasQueue: true}, src, true},
		{SubmitCommandLine{HasQueue: true, Queue: "3"}, src + "queue", false},
		{SubmitCommandLine{HasQueue: true, Queue: "3\nqueue"}, src, false},
		{SubmitCommandLine{Appended: []string{"queue 5"}}, src + "queue", false},
		{SubmitCommandLine{Macros: []string{"A=1\nqueue"}}, src + "queue", false},
	} {
		if err := test.line.Check(test.src); (err == nil) != test.ok {
			t.Errorf("%+v and %q: got %v, want ok %v", test.line, test.src, err, test.ok)
		}
	}
}

// TestFormats holds the forms of -af, -format and -json against what HTCondor's condor_q
// prints.
func TestFormats(t *testing.T) {
	ad, err := classad.Parse(`[ClusterId = 5; ProcId = 0; Cmd = "/bin/x"; Evil = "a\nb"; Size = 1.5; On = true]`)
	if err != nil {
		t.Fatal(err)
	}
	ads, env := []*classad.Ad{ad}, NewEnv(time.Unix(0, 0))
	for _, test := range [][]string{
		{"", "5 /bin/x undefined a\\x0ab 1.5 true\n"},
		{"j", "5.0 5 /bin/x undefined a\\x0ab 1.5 true\n"},
		{"V,", "5, \"/bin/x\", undefined, \"a\\nb\", 1.5, true\n"},
		{"lr", "ClusterId = 5 Cmd = \"/bin/x\" None = undefined Evil = \"a\\nb\" Size = 1.5 On = true\n"},
		{"jh", " ID ClusterId Cmd    None      Evil   Size On\n5.0 5         /bin/x undefined a\\x0ab 1.5  true\n"},
		{"tg", "5\t/bin/x\tundefined\ta\\x0ab\t1.5\ttrue\n\n"},
	} {
		f, err := NewAutoFormat(test[0], []string{"ClusterId", "Cmd", "None", "Evil", "Size", "On"}, env)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Text(ads); got != test[1] {
			t.Errorf("-af:%s: got %q, want %q", test[0], got, test[1])
		}
	}
	for format, want := range map[string]string{`%d\n|ClusterId`: "5\n", "%05.1f|Size": "001.5", "%-8s|Cmd": "/bin/x  ",
		"%d|Cmd": "", "%v|None": "undefined", "<%s>|None": "", "%V|Cmd": `"/bin/x"`, "100%% %d|Size": "100% 1",
		"%s|ClusterId": "5", "text|Cmd": "text", "%d|On": "1", "%ld|ClusterId": "5", "%s|Evil": "a\\x0ab"} {
		f := NewPrintfFormat(env)
		text, attribute, _ := strings.Cut(format, "|")
		if err := f.AddFormat(text, attribute); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if got := f.Text(ads); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
	for _, format := range []string{"%d%d", "%", "%n", "%*d", "%99999999d"} {
		if err := NewPrintfFormat(env).AddFormat(format, "A"); err == nil {
			t.Errorf("-format %s was accepted", format)
		}
	}
	got, err := JSONText(append(ads, ad), []string{"procid", "None", "Evil"})
	one := "{\n  \"ProcId\": 0,\n  \"Evil\": \"a\\nb\"\n}\n"
	if want := "[\n" + one + ",\n" + one + "]\n"; err != nil || !strings.EqualFold(got, want) {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, _ := JSONText(nil, nil); got != "[]\n" {
		t.Errorf("no ads: got %q", got)
	}
}

// TestConstraintIsBounded holds that no constraint runs for long.
func TestConstraintIsBounded(t *testing.T) {
	deep := strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000)
	for text, want := range map[string]bool{"1": true, "0": false, "true": true, "None": false, `"true"`: false,
		"error": false, strings.Repeat("1+", 200_000) + "1": false} {
		c, err := NewConstraint([]string{text}, time.Unix(0, 0))
		if err != nil {
			continue // refused as too deep
		}
		if got := c.Admits(classad.New()); got != want {
			t.Errorf("%.20s: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "a b", strings.Repeat("x", maxConstraintBytes+1), deep + "("} {
		if _, err := NewConstraint([]string{text}, time.Unix(0, 0)); err == nil {
			t.Errorf("%.20q was accepted", text)
		}
	}
}
