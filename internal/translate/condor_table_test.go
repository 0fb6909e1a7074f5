package translate

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// mapTree is a file access for tests. Names are below /data/ann.
type mapTree struct{ fstest.MapFS }

const treeRoot = "/data/ann/"

func treeOf(files map[string]string) mapTree {
	tree := mapTree{fstest.MapFS{}}
	for name, text := range files {
		tree.MapFS[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o755}
	}
	return tree
}

func (t mapTree) Stat(name string) (fs.FileInfo, error) {
	if name == "/bin/echo" {
		name = "1.dat"
	}
	return t.MapFS.Stat(strings.TrimPrefix(name, treeRoot))
}
func (mapTree) Access(string, bool) error            { return nil }
func (mapTree) LookPath(name string) (string, error) { return "/bin/" + name, nil }
func (t mapTree) Read(name string, _ int64) ([]byte, error) {
	return t.MapFS.ReadFile(strings.TrimPrefix(name, treeRoot))
}
func (t mapTree) Glob(pattern string) (names []string, err error) {
	found, err := fs.Glob(t.MapFS, strings.TrimPrefix(pattern, treeRoot))
	for _, name := range found {
		names = append(names, path.Join(treeRoot, name))
	}
	return names, err
}

var tableFiles = map[string]string{
	"list.txt": "a b\n# x\n\nc,d\n  e   f g\n", "1.dat": "", "2.dat": "", "sub/x": "",
	"inc.sub": "inner = from $(outer)\nif true\nin_if = yes\nendif\n", "loop.sub": "include : loop.sub\n",
}

// descriptions are submit descriptions, and the arguments of each job, one job a line.
// Without differs, HTCondor gives the same ones: see TestSameAsCondor.
var descriptions = []struct {
	name, text, want string
	differs          bool
}{
	{"old syntax", `arguments = one two   \"three\" \x 'four five'`, `[one][two]["three"][\x]['four][five']`, false},
	{"new syntax", `arguments = "x 'y z' ""q"" '' a'b c'd 'it''s'"`, `[x][y z]["q"][][ab cd][it's]`, false},
	{"default", "e =\narguments = a$(e:1)b$(none:2)c$(e)d$(none)", "[a1b2cd]", false},
	{"own name", "a = one\na = $(a) two\nb = $(b:x)\narguments = $(a) $(b)", "[one][two][x]", false},
	{"nested", "kind = b\nv_b = val\narguments = $(v_$(kind))", "[val]", false},
	{"late", "a = $(b)\nb = 1\narguments = $(a)\nb = 2", "[2]", false},
	{"case", "Abc = 1\narguments = $(aBC)", "[1]", false},
	{"continued", "arguments = one \\\n  two \\\nthree", "[one][two][three]", false},
	{"filenames", "f = /a/b/data.tar.gz\narguments = $F(f) $Fp(f) $Fd(f) $Fn(f) $Fx(f) $Fnx(f) $Fdn(f) $Fpn(f) " +
		"$Fb(f) $Fdb(f) $Fxb(f) $Fw(f) $Ff(f) $Fn(/lit/eral.txt) $Fpb(f)", "[/a/b/data.tar.gz][/a/b/][b/][data.tar]" +
		"[.gz][data.tar.gz][b/data.tar][/a/b/data.tar][/a/b/data.tar.gz][b][gz]" +
		`[\a\b\data.tar.gz][/a/b/data.tar.gz][eral][/a/b]`, false},
	{"base and directory", "f = /a/b/data.tar.gz\narguments = $BASENAME(f) $DIRNAME(f)", "[data.tar.gz][/a/b/]", false},
	{"substrings", "v = 0123456789\narguments = $SUBSTR(v,2) $SUBSTR(v,2,3) $SUBSTR(v,-3) $SUBSTR(v,0,-4)",
		"[23456789][234][789][012345]", false},
	{"numbers", "n = 7/2\narguments = $INT(n) $INT(n,%05d) $REAL(n) $REAL(1.0/3) $REAL(n,%.2f) $INT(3+4) $INT(255,%x)",
		"[3][00003][3][0.3333333333333333][3.00][7][ff]", false},
	{"choices", "i = 2\nlist = x, y, z\narguments = $CHOICE(1,a,b,c) $CHOICE(i,list) $CHOICE(0,list)", "[b][z][x]",
		false},
	{"one choice", "arguments = $RANDOM_CHOICE(a) $RANDOM_INTEGER(4,4)", "[a][4]", false},
	{"environment", "arguments = $ENV(ROOST_TEST:x) $ENV(HOME)", "[x][/home/ann]", true},
	{"if", "x = 1\nif defined x\n a = 1\nelse\n a = 2\nendif\nif ! defined y\n b = 1\nendif\nif false\n c = 1\n" +
		"elif true\n c = 2\nelif true\n c = 3\nelse\n c = 4\nendif\n" +
		"if 0\n if true\n  d = 1\n else\n  d = 2\n endif\nendif\n" +
		"arguments = $(a) $(b) $(c) $(d:none)", "[1][1][2][none]", false},
	{"if by macros", "on = yes\nn = on\nif $(on)\n a = 1\nendif\nif defined $(n)\n b = 1\nendif\n" +
		"if defined $(zz)\n c = 1\nendif\narguments = $(a) $(b) $(c:0)", "[1][1][0]", false},
	{"version", "if version >= 8.1.6\n a = 1\nendif\nif version > 99.1\n b = 1\nendif\narguments = $(a) $(b:0)",
		"[1][0]",
		false},
	{"queue in if", "arguments = 1\nif false\nqueue 3\nelse\nqueue 2\nendif", "[1]\n[1]", true},
	{"include", "outer = here\ninclude : inc.sub\narguments = $(inner) $(in_if)", "[from][here][yes]", false},
	{"include if there", "include ifexist : none.sub\narguments = 1", "[1]", false},
	{"process", "arguments = $(Process) $(ProcId) $(Step) $(ItemIndex)\nqueue 2", "[0][0][0][0]\n[1][1][1][0]", false},
	{"computed", "x = $(Process) * 10 + 1\narguments = $INT(x) $INT(x,%03d)\nqueue 3",
		"[1][001]\n[11][011]\n[21][021]", false},
	{"in", "arguments = $(x) $(ItemIndex)\nqueue x in (a, b c,d)", "[a][0]\n[b][1]\n[c][2]\n[d][3]", false},
	{"Item", "arguments = $(Item)\nqueue in (a, b)", "[a]\n[b]", false},
	{"slice", "arguments = $(x) $(ItemIndex)\nqueue x in [1:3] (a, b, c, d)", "[b][1]\n[c][2]", false},
	{"slice from the end", "arguments = $(x)\nqueue x in [-2:] (a, b, c, d)", "[c]\n[d]", false},
	{"slice with steps", "arguments = $(x)\nqueue x in [::2] (a, b, c, d, e)", "[a]\n[c]\n[e]", false},
	{"table", "arguments = \"$(x) '$(y)'\"\nqueue x, y from (\n 1, 2\n 3 4 5\n # no item\n)",
		"[1][2]\n[3][4 5]", false},
	{"rows of a file", "arguments = \"$(x) '$(y)'\"\nqueue x,y from list.txt",
		"[a][b]\n[#][x]\n[][]\n[c][d]\n[e][f g]", true},
	{"lines of a file", "arguments = \"'$(x)'\"\nqueue x from list.txt", "[a b]\n[# x]\n[]\n[c,d]\n[e   f g]", false},
	{"slice of a file", "arguments = \"'$(x)'\"\nqueue x from [1:] list.txt", "[# x]\n[]\n[c,d]\n[e   f g]", false},
	{"matching", "arguments = $(f) $Fn(f)\nqueue f matching *.dat", "[1.dat][1]\n[2.dat][2]", false},
	{"matching directories", "arguments = $(f)\nqueue f matching dirs s*", "[sub/]", false},
	{"steps of items", "arguments = $(x) $(Step) $(ItemIndex) $(Process)\nqueue 2 x in (a, b)",
		"[a][0][0][0]\n[a][1][0][1]\n[b][0][1][2]\n[b][1][1][3]", false},
	{"functions of items", "arguments = $Fnx(f) $INT(n,%03d)\nqueue f, n from (\n /a/b.c 1\n d/e.f 2+3\n)",
		"[b.c][001]\n[e.f][005]", false},
	{"queue by macros", "n = 2\nlist = p, q\narguments = $(x)\nqueue $(n) x in ($(list))", "[p]\n[p]\n[q]\n[q]", false},
	{"attribute", "My.Kind = \"blue\"\n+Other = 5\narguments = 1", "[1]", false},
	{"words", "arguments = $(DOLLAR)x $(SUBMIT_FILE)", "[$x][x.sub]", false},
	{"block", "text @=end\n a b\nend\n@end\narguments = \"'$(text)'\"", "[ a b\nend]", true},
}

func tableOptions() SourceOptions {
	return SourceOptions{Name: "x.sub", From: Condor, Files: treeOf(tableFiles), Dir: "/data/ann", Home: "/home/ann",
		Environ: []string{"HOME=/home/ann"}, Now: time.Unix(1e9, 0).UTC(), SeparateItems: true, DefaultQueue: "1"}
}

func tableSource(text string) []byte { return []byte("executable = /bin/echo\n" + text + "\n") }

// TestDescriptions checks what becomes of submit descriptions, with the items in the text
// and beside it.
func TestDescriptions(t *testing.T) {
	for _, test := range descriptions {
		for _, separate := range []bool{true, false} {
			opts := tableOptions()
			opts.SeparateItems = separate
			r, err := TranslateFile(tableSource(test.text), opts)
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			for _, n := range r.Notes {
				if n.Kind == Mistake {
					t.Errorf("%s: %+v", test.name, n)
				}
			}
			if got := strings.Join(taskArguments(t, r), "\n"); got != test.want &&
				(separate || test.name != "lines of a file") { // HCL keeps blanks
				t.Errorf("%s (separate: %v):\n%s\nwant:\n%s\n%s", test.name, separate, got, test.want, r.Text)
			}
		}
	}
}

// taskArguments are the arguments of all tasks, each in brackets.
func taskArguments(t *testing.T, r TranslatedFile) (lines []string) {
	t.Helper()
	jobs, diags := submit.ParseFile([]byte(r.Text), submit.ParseOptions{Filename: "x", Dir: "/data/ann",
		Home: "/home/ann", Files: treeOf(tableFiles), Items: r.Items})
	if diags.HasErrors() {
		t.Errorf("%v\n%s", diags, r.Text)
	}
	for _, j := range jobs {
		args, _ := j.Ad.Strings(roost.AttrArguments)
		for i := range j.Count {
			line := ""
			for _, a := range args {
				line += "[" + taskValue(j, i, a) + "]"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// taskValue replaces the references of a text for one task.
func taskValue(j jobspec.Job, i int, s string) string {
	pairs := []string{"$$", "$", "$(TaskIndex)", strconv.Itoa(i), "$(JobSeq)", "1"}
	for _, c := range j.Columns {
		pairs = append(pairs, "$("+c.Name+")", c.Values[i])
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// TestSameAsCondor compares the table with HTCondor's condor_submit, whose path is in
// CONDOR_SUBMIT. The one along PATH may be the link of that name to roost.
func TestSameAsCondor(t *testing.T) {
	program := os.Getenv("CONDOR_SUBMIT")
	if program == "" {
		t.Skip("CONDOR_SUBMIT names no condor_submit of HTCondor to compare with")
	}
	dir := t.TempDir()
	for name, text := range tableFiles {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
	}
	for _, test := range descriptions {
		if test.differs {
			continue
		}
		src := tableSource(test.text)
		if !strings.Contains(test.text, "queue") {
			src = append(src, "queue\n"...)
		}
		os.WriteFile(filepath.Join(dir, "x.sub"), src, 0o644)
		cmd := exec.Command(program, "-dry-run", "-", "x.sub")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: condor_submit: %v\n%s", test.name, err, out)
			continue
		}
		if got := strings.Join(condorArguments(out), "\n"); got != test.want {
			t.Errorf("%s: condor_submit gives:\n%s\nwant:\n%s", test.name, got, test.want)
		}
	}
}

// condorArguments are the arguments of the ads that condor_submit -dry-run prints. An ad
// has only what differs from the first one.
func condorArguments(out []byte) (lines []string) {
	args := ""
	for _, line := range bytes.Split(out, []byte("\n")) {
		name, value, _ := strings.Cut(string(line), "=")
		switch {
		case name == "Args" || name == "Arguments":
			text, err := strconv.Unquote(strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), `\\"`, `\"`))
			if err != nil {
				text = fmt.Sprint(err)
			}
			args = ""
			q := &condorJob{condorSubmitFile: &condorSubmitFile{fileTranslation: &fileTranslation{}},
				rows: newItemRows(false), expansionBudget: maxExpansion}
			if name == "Arguments" {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			for _, w := range q.splitWords(strings.ReplaceAll(text, "$", "\x01")) {
				fixed, _ := w.fixedText()
				args += "[" + strings.ReplaceAll(fixed, "\x01", "$") + "]"
			}
		case string(line) == ".":
			lines = append(lines, args)
		}
	}
	return lines
}

// TestMistakes checks what is refused, with its line.
func TestMistakes(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"if maybe\nendif", "2: This is no condition."},
		{"if true", "2: This if has no endif."},
		{"endif", "2: There is no if above it."},
		{"if true\nelse\nelse\nendif", "4: The if on line 2 has an else already."},
		{"include : none.sub", "2: none.sub cannot be read:"},
		{"include : loop.sub", "1: More than 20 files include each other."},
		{"include command : date", "2: Commands are not run."},
		{"error : do not use this", "2: The description refuses to be submitted: do not use this"},
		{"a = $(b)\nb = $(a)\narguments = $(a)", "4: Macros refer to each other in a circle here."},
		{"arguments = $INT(x)", `2: $INT(…): "x" is no number.`},
		{"arguments = $CHOICE(3,a,b)", "2: $CHOICE(…): there is no item 3 among 2"},
		{"request_memory = lots", `2: "lots" is no size such as 4GB`},
		{"request_cpus = 0", `2: "0" is no number`},
		{"request_memory = $(m)\nqueue m from (\n1GB\nbig\n)", `2: job 1: "big" is no size`},
		{"universe = grid", "2: There is one kind of job here"},
		{"what is this", "2: This line is not understood."},
		{"queue x from none.txt", "2: none.txt cannot be read:"},
		{"queue x matching *.none", "2: It has no items."},
		{"queue x in ()", "2: It has no items."},
		{"text @=end\nx", "2: The value has no end: no line is @end."},
		{"requst_cpus = 4", "2: Nothing uses it. Did you mean request_cpus?"},
		{"periodic_hold = JobStatus ==", "2: It is no ClassAd expression"},
		{"periodic_hold = true\nperiodic_hold_reason = strcat(Owner, 1)", "3: A reason is a text here"},
		{"container_image = $(x)\nqueue x in (a, b)", "2: container_image is the same for all jobs of a queue command"},
		{"notification = perhaps", "2: It is Always, Complete, Error or Never."},
	} {
		r, err := TranslateFile(tableSource(test.text), tableOptions())
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		var all []string
		for _, n := range r.Notes {
			all = append(all, fmt.Sprintf("%d: %s", n.Line, n.Reason))
		}
		if !strings.Contains("\n"+strings.Join(all, "\n"), "\n"+test.want) {
			t.Errorf("%s: %q, want %q", test.text, all, test.want)
		}
	}
}

// TestGivenLines checks macros and lines of the command line.
func TestGivenLines(t *testing.T) {
	opts := tableOptions()
	opts.Macros, opts.Append = []string{"a=1", "b = two"}, []string{"c = 3", "request_cpus = 2", "+Kind = \"x\""}
	r, err := TranslateFile(tableSource("b = mine\nif defined a\nd = 4\nendif\nrequest_cpus = 1\n"+
		"arguments = $(a) $(b) $(c) $(d)\nqueue\nc = 5\nqueue"), opts)
	if err != nil {
		t.Fatal(err)
	}
	got := taskArguments(t, r)
	if want := "[1][mine][3][4]\n[1][mine][3][4]"; strings.Join(got, "\n") != want || len(r.Notes) != 1 {
		t.Errorf("%q, want %q; %v", got, want, r.Notes)
	}
	if !strings.Contains(r.Text, "cpus = 2") || !strings.Contains(r.Text, `Kind = "x"`) {
		t.Errorf("the appended lines do not count:\n%s", r.Text)
	}
}
