package qsub

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/script"
)

func testCaller(script string) QsubCaller {
	return QsubCaller{
		Dir: "/data/ann", Home: "/home/ann", User: "ann", Group: "optics", Host: "srv",
		Now:     time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Environ: []string{"PATH=/usr/bin", "SHELL=/bin/bash", "HOME=/home/ann", "COST=5$"},
		Read: func(path string) ([]byte, error) {
			if strings.HasPrefix(path, "/data/ann/") && !strings.Contains(path, "missing") {
				return []byte(script), nil
			}
			return nil, fs.ErrNotExist
		},
		Stdin:    func() ([]byte, error) { return []byte(script), nil },
		IsDir:    func(path string) bool { return path == "/data/ann/logs" },
		LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil },
	}
}

const helloScript = "#!/bin/sh\necho hello\n"

// TestStories runs the tables of qsub. "qsub ARGUMENT…", with a script in the lines below
// it, prints the refusal with the exit status, or the differences to the plain script.
// Variants are
//
//	quoted ARGUMENT…            the script is a quoted text of Go
//	with NAME=value ARGUMENT…   with a variable in the environment of qsub
//	torque ARGUMENT…            in the Torque dialect
//	pool ARGUMENT…              with a pool that can be asked: it has the machines n1.vm,
//	                            n2.vm, n7.a, n7.b and gpu, some with bigmem and model
func TestStories(t *testing.T) {
	plain, err := ParseQsub(nil, testCaller(helloScript))
	if err != nil {
		t.Fatal(err)
	}
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		return func(s script.ScriptCommand) string {
			script := helloScript
			if len(s.Input) > 0 {
				script = strings.Join(s.Input, "\n") + "\n"
			}
			if s.Command == "quoted" {
				var err error
				if script, err = strconv.Unquote(s.Input[0]); err != nil {
					t.Fatalf("line %d: %v", s.Line, err)
				}
			} else if s.Command != "qsub" && s.Command != "with" && s.Command != "torque" && s.Command != "pool" {
				t.Fatalf("line %d: there is no command %s", s.Line, s.Command)
			}
			args, ok := SplitWords(strings.Join(s.Args, " "))
			if !ok {
				t.Fatalf("line %d: a quote is not closed", s.Line)
			}
			who := testCaller(script)
			if s.Command == "with" { // NAME=value in the environment of qsub
				who.Environ, args = append(who.Environ, args[0]), args[1:]
			}
			if s.Command == "pool" {
				who.Inventory = &PoolInventory{
					Machines: func() ([]string, error) {
						return []string{"n1.vm", "n2.vm", "n7.a", "n7.b", "gpu"}, nil
					},
					IsDeclared: func(word string) (bool, error) { return word == "bigmem" || word == "model", nil },
				}
			}
			if s.Command == "torque" {
				who.Dialect = func() roost.PBSDialect { return roost.Torque }
			}
			return resultText(t, args, who, script, plain)
		}
	})
}

// resultText describes the result of qsub as its differences to plain.
func resultText(t *testing.T, args []string, who QsubCaller, script string, plain QsubResult) string {
	got, err := ParseQsub(args, who)
	var refused *RefusalError
	if errors.As(err, &refused) {
		text, _, more := strings.Cut(refused.Text, "\n")
		if more {
			text += " …"
		}
		return fmt.Sprintf("%s\nexit %d", text, refused.ExitStatus)
	}
	if err != nil {
		t.Fatalf("%q: %v is no *Error", args, err)
	}
	var lines []string
	resultLines := func(r QsubResult) map[string]string {
		m := map[string]string{}
		for _, name := range r.Job.Ad.Names() {
			e, _ := r.Job.Ad.Lookup(name)
			if m[name] = e.String(); name == roost.AttrEnvironment || name == roost.AttrPBS ||
				name == roost.AttrSubmitArguments {
				delete(m, name)
			}
		}
		record, _ := r.Job.Ad.Sub(roost.AttrPBS)
		for _, name := range record.Names() {
			e, _ := record.Lookup(name)
			m["PBS "+name] = e.String()
		}
		if text, _ := r.Job.Ad.Str("Script"); text == script || text == helloScript {
			delete(m, "Script")
		}
		env, _ := r.Job.Ad.Strings("Environment")
		for _, v := range env {
			name, value, _ := strings.Cut(v, "=")
			m["env "+name] = strconv.Quote(value)
		}
		for _, c := range r.Job.Columns {
			m["column "+c.Name] = strings.Join(c.Values, " ")
			if len(c.Values) != r.Job.Count {
				t.Errorf("%q: column %s has %d values of %d", args, c.Name, len(c.Values), r.Job.Count)
			}
		}
		m["server"] = r.Server
		m["interactive"], m["warnings"] = strconv.FormatBool(r.Interactive), strings.Join(r.Warnings, "; ")
		m["quiet"], m["block"], m["array"] = strconv.FormatBool(r.Quiet), strconv.FormatBool(r.Block),
			strconv.FormatBool(r.Job.Array)
		return m
	}
	have, usual := resultLines(got), resultLines(plain)
	for name, v := range have {
		if v != usual[name] {
			lines = append(lines, name+" = "+v)
		}
	}
	for name := range usual {
		if _, there := have[name]; !there {
			lines = append(lines, name+" is not set")
		}
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		return "as usual"
	}
	return strings.Join(lines, "\n")
}

// TestNoticeIsUnset checks that a job of qsub does not set a notice period. It comes from
// kill_delay of the queue, and otherwise is PBS's ten seconds, which a job without one
// gets.
func TestNoticeIsUnset(t *testing.T) {
	got, err := ParseQsub([]string{"f"}, testCaller("true"))
	if err != nil {
		t.Fatal(err)
	}
	if _, says := got.Job.Ad.Lookup(roost.AttrNoticePeriod); says {
		t.Fatalf("it asks for a notice of its own: %v", got.Job.Ad)
	}
}

func TestStoredScript(t *testing.T) {
	script := "#!/bin/sh\n#PBS -m \\\nn\n# c \\\necho $HOME $(x)\n"
	got, err := ParseQsub([]string{"f"}, testCaller(script))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := got.Job.Ad.Str("Script"); text != "#!/bin/sh\n#PBS -m n\n# c \\\necho $HOME $(x)\n" {
		t.Fatalf("script %q", text)
	}
}

func FuzzQsub(f *testing.F) {
	f.Add("-joe\n-lnodes=1:ppn=2\nrun.sh", "#PBS -J 1-3 -v A=1\necho\n")
	f.Add("-t1,2-3%4\n-Wdepend=afterok:1\n-", "#PBS -l select=1:ncpus=2\n")
	f.Fuzz(func(t *testing.T, args, script string) {
		if strings.Contains(args, "-t") && len(args) > 40 {
			return // large arrays only take time
		}
		got, err := ParseQsub(strings.Split(args, "\n"), testCaller(script))
		var e *RefusalError
		if err != nil && (!errors.As(err, &e) || e.ExitStatus == 0 || e.Text == "") {
			t.Fatalf("error %#v", err)
		}
		if err != nil {
			return
		}
		if got.Job.Ad == nil || got.Job.Count < 1 {
			t.Fatalf("job %+v", got.Job)
		}
		for _, c := range got.Job.Columns {
			if len(c.Values) != got.Job.Count {
				t.Fatalf("column %s has %d values for %d tasks", c.Name, len(c.Values), got.Job.Count)
			}
		}
		text := got.Job.Ad.String()
		again, err := classad.Parse(text)
		if err != nil || again.String() != text {
			t.Fatalf("the ad does not survive being sent: %v\n%s", err, text)
		}
	})
}

// FuzzWords checks that a quoted text is split back into itself, and that the splitter
// never fails.
func FuzzWords(f *testing.F) {
	f.Add("a b", "c'd")
	f.Add(`x\`, `"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		SplitWords(a)
		SplitList(b)
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }
		words, ok := SplitWords(" " + quote(a) + "\t" + quote(b) + " ")
		if !ok || !slices.Equal(words, []string{a, b}) {
			t.Fatalf("got %q, want %q", words, []string{a, b})
		}
	})
}

// FuzzDirectives checks that directives are lines of the script with the prefix. Joined
// lines are otherwise unchanged, and the stored script has the same directives.
func FuzzDirectives(f *testing.F) {
	f.Add("#!/bin/sh\n#PBS -N x \\\n-p 3\n# c \\\ntrue\n#PBS -h\n")
	f.Add("  #PBS\\")
	f.Fuzz(func(t *testing.T, text string) {
		script, directives, err := findDirectives(text, "#PBS")
		if err != nil {
			return
		}
		joined := func(s string) string { return strings.NewReplacer("\\", "", "\n", "", " ", "", "\t", "").Replace(s) }
		if joined(script) != joined(text) {
			t.Fatalf("%q became %q", text, script)
		}
		for _, d := range directives {
			if !strings.Contains(script, d) || strings.Contains(d, "\n") {
				t.Fatalf("the directive %q is not of %q", d, script)
			}
		}
		again, same, err := findDirectives(script, "#PBS")
		if err != nil || again != script || !slices.Equal(directives, same) {
			t.Fatalf("%q gives %q, and that %q and %q", text, directives, again, same)
		}
	})
}

func TestProcesses(t *testing.T) {
	for text, want := range map[string]int{"2:ncpus=4": -1, "2:ncpus=4:mpiprocs=3": 6,
		"1:ncpus=4:mpiprocs=2+2:ncpus=1": 4, "1:ncpus=0:mpiprocs=0": 0, "2:odd": -1, "": -1} {
		n, stated := ProcessCount(text)
		if !stated {
			n = -1
		}
		if n != want {
			t.Errorf("%s: %d, want %d", text, n, want)
		}
	}
}
