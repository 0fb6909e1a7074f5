package submit

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestHostileSource checks that source that is too big or too deep is refused before
// recursive code reads it.
func TestHostileSource(t *testing.T) {
	for name, src := range map[string]string{
		"100 MB":           strings.Repeat("# junk\n", 15<<20),
		"brackets":         "a = " + strings.Repeat("[", 100_000),
		"braces":           strings.Repeat("a {\n", 100_000),
		"parentheses":      "a = " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000),
		"interpolation":    "a = " + strings.Repeat("\"${", 100_000),
		"not":              "a = " + strings.Repeat("!", 100_000) + "true",
		"minus":            "a = " + strings.Repeat("-", 100_000) + "1",
		"sum":              "a = 1" + strings.Repeat("+1", 100_000),
		"conditions":       "a = " + strings.Repeat("true ? 1 : ", 100_000) + "1",
		"template control": "a = \"" + strings.Repeat("%{ if true }", 100_000) + "\"",
		"indexes":          "a = b" + strings.Repeat("[0]", 100_000),
		"splats":           "a = b" + strings.Repeat("[*]", 100_000),
		"sum over lines":   "a = (1" + strings.Repeat("\n+1", 100_000) + ")",
	} {
		_, diags := ParseFile([]byte(src), testOptions("x.hcl"))
		if len(diags) != 1 || ExitKind(diags) != roost.Invalid {
			t.Errorf("%s: %d diagnostics, first %v", name, len(diags), diags[0].Summary)
		}
	}
}

// TestCommand checks that commands are read like job blocks.
func TestCommand(t *testing.T) {
	opts := testOptions("")
	job, err := Command([]string{"echo", "$HOME"}, JobFlags{Memory: "1GiB", Count: 3, Environment: []string{"A=1"},
		DependsOn: []string{"afterany:7"}, Stdout: "/dev/null"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "testdata/command.txt", dumpJobs([]Job{job}))
	for _, c := range []struct {
		argv    []string
		request JobFlags
		kind    roost.ErrorKind
	}{
		{nil, JobFlags{}, roost.Usage},
		{[]string{"pyhton"}, JobFlags{}, roost.NoInput},
		{[]string{"echo"}, JobFlags{Memory: "4"}, roost.Invalid},
		{[]string{"echo"}, JobFlags{Count: -1}, roost.Invalid},
		{[]string{"echo"}, JobFlags{Name: "a b"}, roost.Invalid},
		{[]string{"echo"}, JobFlags{Environment: []string{"A"}}, roost.Invalid},
		{[]string{"echo"}, JobFlags{Requirements: "1 +"}, roost.Invalid},
		{[]string{"echo"}, JobFlags{DependsOn: []string{"x"}}, roost.Invalid},
	} {
		if _, err := Command(c.argv, c.request, opts); !errors.Is(err, c.kind) {
			t.Errorf("%q %+v: %v, want kind %v", c.argv, c.request, err, c.kind)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(wideJob[:40]))
	f.Add([]byte("job \"a\" {\n command = [\"echo\", each.value.x]\n for_each = matrix({x = range(3)})\n " +
		"requirements = machine.memory > \"1G\"\n}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		jobs, diags := ParseFile(src, testOptions("f.hcl"))
		if diags.HasErrors() == (len(jobs) > 0) {
			t.Fatalf("%d jobs and %v", len(jobs), diags)
		}
		for _, j := range jobs {
			for _, c := range j.Columns {
				if len(c.Values) != j.Count {
					t.Fatalf("column %s has %d values of %d", c.Name, len(c.Values), j.Count)
				}
			}
		}
		if out := Format(diags, src, 80, false); bytes.ContainsAny([]byte(out), "\x1b\x07") {
			t.Fatalf("escape sequences in %q", out)
		}
	})
}
