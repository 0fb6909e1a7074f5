package classad

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/clitest"
)

// adFiles are files for the commands of the golden file.
var adFiles = map[string]string{
	"job.ad": "[\n  RequestMemory = 8000;\n  Rank = TARGET.Mips;\n  Requirements = TARGET.Memory >= RequestMemory " +
		"&& TARGET.Arch == \"X86_64\" && (TARGET.Gpus > 0 || NoGpu)\n]\n",
	"machine.ad": "Name = \"n1\"\nMemory = 1000\nArch = \"x86_64\"\nMips = 2000\n\n" +
		"KeyboardIdle = 3\nStart = KeyboardIdle > 900 && TARGET.Owner =!= \"bob\"\nRequirements = Start\n",
	"big.json":    `{"Memory": 64000, "Arch": "X86_64", "Gpus": 1, "Mips": 1.5, "Rank": "/Expr(TARGET.Prio)/", "Requirements": true}`,
	"two.old":     "A = 1\nB = \"x\"\n\nA = 2\n# a comment\n",
	"wrong.old":   "A = 1\nB = 1 +\n\nC == 4\nD = 5\n",
	"wrong.ad":    "[ a = 1 ] // fine\n[ b = 2 c = 3 ]\n[ d = \"]\" ]\n",
	"wrong.json":  "[{\"a\": 1},\n {\"b\": tru}]\n",
	"inner.json":  "{\"a\": 1,\n \"b\": \"/Expr(1 +)/\"}\n",
	"plain.expr":  "a&&b ||c",
	"comments.ad": "[ a = 1; // why\n]\n",
	"ready.ad":    "[\n  a = 1;\n]\n",
	"list.json":   `[{"a": 1}, {"b": [true, null]}]`,
}

// TestClassad holds what roost classad prints, which a golden file shows. One blank in a
// line parts two words, and an underscore stands for a blank within one.
func TestClassad(t *testing.T) {
	var b strings.Builder
	for _, line := range []string{
		"eval 1_+_1", "eval --ad job.ad RequestMemory_/_3.0",
		"eval --ad job.ad --target machine.ad {TARGET.Memory,TARGET.Requirements,Mips}", "eval --ad - x",
		"eval 1/0", "eval 1_+", "eval a\n&&_\"b", "eval", "eval 1 2", "eval --old 1", "eval --ad two.old A",
		"eval --ad none A", "eval --ad wrong.old A", "eval --ad - --target - 1",
		"eval -- -5", "eval -5_+_3", "eval -RequestMemory --ad job.ad", "eval -w", "eval --wrong", "evil 1",
		"match job.ad machine.ad", "match job.ad big.json", "match --json job.ad machine.ad", "match machine.ad",
		"match plain.expr job.ad", "match - job.ad",
		"parse job.ad two.old big.json list.json", "parse --old job.ad two.old", "parse --json machine.ad two.old",
		"parse wrong.old wrong.ad wrong.json inner.json", "parse --old --json job.ad",
		"fmt job.ad machine.ad list.json plain.expr", "fmt comments.ad", "fmt --check job.ad ready.ad comments.ad",
		"fmt --check ready.ad", "fmt -w comments.ad", "fmt -w -", "fmt -w --check job.ad",
		"fmt wrong.old", "fmt wrong.ad", "fmt wrong.json",
	} {
		a, stdout, stderr := newClassadApp(t, t.TempDir())
		a.Stdin = strings.NewReader("x = 5\n")
		for name, text := range adFiles {
			if err := os.WriteFile(filepath.Join(a.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := strings.Split(line, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		code := a.Run(t.Context(), append([]string{"roost", "classad"}, args...))
		fmt.Fprintf(&b, "$ roost classad %q\n%s", args, stdout)
		for l := range strings.Lines(stderr.String()) {
			b.WriteString("! " + l)
		}
		if code != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", code)
		}
		b.WriteString("\n")
	}
	clitest.CompareGolden(t, "classad", b.String())
}

// runClassad runs one command with that standard input in the directory of a's.
func runClassad(t *testing.T, dir, stdin string, args ...string) (stdout string, code int) {
	t.Helper()
	a, out, _ := newClassadApp(t, t.TempDir())
	a.Stdin = strings.NewReader(stdin)
	if dir != "" {
		a.Dir = dir
	}
	code = a.Run(t.Context(), append([]string{"roost", "classad"}, args...))
	return out.String(), code
}

// TestClassadHelp holds that the command alone shows its help.
func TestClassadHelp(t *testing.T) {
	if out, code := runClassad(t, "", ""); code != 0 || !strings.Contains(out, "roost classad match") {
		t.Errorf("exit status %d, %s", code, out)
	}
}

// TestClassadWrite holds that a file is rewritten once, keeps its permissions, and that
// links stay links.
func TestClassadWrite(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.ad"), filepath.Join(dir, "link.ad")
	if err := os.WriteFile(file, []byte("[a=1]"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.ad", link); err != nil {
		t.Fatal(err)
	}
	if out, code := runClassad(t, dir, "", "fmt", "-w", "link.ad"); code != 0 || out != "" {
		t.Fatalf("exit status %d, %s", code, out)
	}
	text, _ := os.ReadFile(file)
	info, _ := os.Stat(file)
	if string(text) != "[\n  a = 1;\n]\n" || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q with mode %v", text, info.Mode())
	}
	if at, err := os.Readlink(link); err != nil || at != "a.ad" {
		t.Errorf("the link leads to %q (%v)", at, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("there are %d files", len(entries))
	}
	if _, code := runClassad(t, dir, "", "fmt", "--check", "a.ad"); code != 0 {
		t.Errorf("what was formatted is not: exit status %d", code)
	}
}

// TestClassadBatch holds that each line has one answer, whatever is on it.
func TestClassadBatch(t *testing.T) {
	long := "\"" + strings.Repeat("x", 10<<20) + "\""
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"# context\texpression\twhatever\n", ""},
		{"\t1+1\n[a=1]\ta\tignored\tignored\n[a=1]\tb\n", "2\n1\nundefined\n"},
		{"[a=1] ;;TARGET;; [b=2]\ta+b+TARGET.b\n ;;TARGET;; [b=2]\tb", "5\n2\n"},
		{"[a\t1\n[a\t1\n\t1 +\n", "PARSE_ERROR classad: line 1, column 3: expected =, but the text ends " +
			"here\nPARSE_ERROR classad: line 1, column 3: expected =, but the text ends here\n" +
			"PARSE_ERROR classad: line 1, column 4: expected an expression, but the text ends here\n"},
		{"1\n\n", "PARSE_ERROR there is no tab between context and expression\nPARSE_ERROR there is no tab between " +
			"context and expression\n"},
		{"PARSE_AD\t[a=1;b={}]\nPARSE_AD\t(empty string)\n",
			"[ a = 1; b = {  } ]\nPARSE_ERROR classad: line 1, column 1: an ad starts with [, but the " +
				"text ends here\n"},
		{"[Requirements=true] ;;TARGET;; [Requirements=1]\tMATCH:symmetric\n[Requirements=a] ;;TARGET;; " +
			"[a=false]\tMATCH:left.requirements\n" +
			"[Requirements=true] ;;TARGET;; [Requirements=0]\tMATCH:right.requirements\n[]\tMATCH:x\n",
			"true\nfalse\nfalse\nPARSE_ERROR MATCH: is followed by symmetric, left.requirements " +
				"or right.requirements\n"},
		{"\t\"a\\nb\"\r\n", "\"a\\nb\"\n"},
		{"\tsize(" + long + ")\n\t1\n", fmt.Sprintf("%d\n1\n", 10<<20)},
		{strings.Repeat("x", maxBatchLine+1) + "\n\t1\n", "PARSE_ERROR the line is too long\n1\n"},
	} {
		if out, code := runClassad(t, "", test.in, "eval", "--batch"); out != test.want || code != 0 {
			t.Errorf("%.200q\n got %.300q\nwant %.300q, exit status %d", test.in, out, test.want, code)
		}
	}
}

// TestClassadBatchFile holds that lines can come from a file.
func TestClassadBatchFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lines"), []byte("\t1\n\t2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := runClassad(t, dir, "", "eval", "--batch", "lines"); out != "1\n2\n" || code != 0 {
		t.Errorf("exit status %d, %q", code, out)
	}
	if _, code := runClassad(t, dir, "", "eval", "--batch", "none"); code != 66 {
		t.Errorf("a file that is missing gives exit status %d", code)
	}
}

// TestClassadBatchVectors holds that each vector of the library gives one line with the
// text that HTCondor writes. A few spell a value in another way.
func TestClassadBatchVectors(t *testing.T) {
	for name, most := range map[string]int{"vectors": 40, "optable": 1, "functable": 9} {
		f, err := os.Open(filepath.Join("..", "..", "..", "classad", "testdata", name+".tsv.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := runClassad(t, "", string(text), "eval", "--batch")
		answers := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		differ := 0
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "# context") {
				continue
			}
			row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(answers) == 0 {
				t.Fatalf("%s: there are fewer answers than lines", name)
			}
			got := answers[0]
			answers = answers[1:]
			if len(row) > 3 && (row[3] == "quirk" || row[3] == "stale") || got == row[2] ||
				row[2] == "PARSE_ERROR" && strings.HasPrefix(got, "PARSE_ERROR ") {
				continue
			}
			differ++
		}
		if len(answers) != 0 || differ > most {
			t.Errorf("%s: %d answers too many, %d lines differ, want %d at most", name, len(answers), differ, most)
		}
	}
}

// FuzzClassadBatch holds that any input has as many answers as lines.
func FuzzClassadBatch(f *testing.F) {
	f.Add("[a=1]\ta\n\t\xff\x00\n")
	f.Add("PARSE_AD\t[\n;;TARGET;;\tMATCH:symmetric\n\t")
	f.Fuzz(func(t *testing.T, text string) {
		want := 0
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, batchComment) {
				want++
			}
		}
		if out, _ := runClassad(t, "", text, "eval", "--batch"); strings.Count(out, "\n") != want {
			t.Errorf("%q: got %q", text, out)
		}
	})
}

// FuzzClassadFiles holds that formatting ads keeps what they say, and that formatting
// them again changes nothing.
func FuzzClassadFiles(f *testing.F) {
	for _, text := range adFiles {
		f.Add(text)
	}
	f.Add("// c\n[ a = 1 ][b = \"]\"] /* d */")
	f.Add(" [ {\"a\": [1.0, null, {\"b\": \"/Expr(x)/\"}]} ] ")
	f.Fuzz(func(t *testing.T, text string) {
		want, code := runClassad(t, "", text, "parse")
		formatted, wrong := runClassad(t, "", text, "fmt")
		if code != 0 {
			return
		}
		if wrong != 0 {
			t.Fatalf("%q: fmt gives exit status %d", text, wrong)
		}
		if got, code := runClassad(t, "", formatted, "parse"); got != want || code != 0 {
			t.Errorf("%q\nformatted %q\n got %q\nwant %q", text, formatted, got, want)
		}
		if again, _ := runClassad(t, "", formatted, "fmt"); again != formatted {
			t.Errorf("%q\n once %q\ntwice %q", text, formatted, again)
		}
	})
}

// TestClassadPieces holds that ads that follow one another are found again, in every
// syntax.
func TestClassadPieces(t *testing.T) {
	ads := []string{`[ a = "]"; 'b]' = { [ c = 1 ] } ]`, `[  ]`, `[ d = "\"]\\"; e = x[1]["y"] ]`}
	for syntax, join := range []func(*classad.Ad) string{
		func(ad *classad.Ad) string { return ad.String() + " // ]\n/* [ */ " },
		func(ad *classad.Ad) string { return "# one\n" + ad.Old() + " \n\t\n" },
		func(ad *classad.Ad) string { text, _ := ad.MarshalJSON(); return string(text) + "\n" },
	} {
		var b strings.Builder
		var want []string
		for _, text := range ads {
			ad, err := classad.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if adSyntax(syntax) == oldSyntax && ad.Len() == 0 {
				continue // it leaves nothing behind
			}
			want = append(want, ad.String())
			b.WriteString(join(ad))
		}
		if got := detectSyntax(b.String()); got != adSyntax(syntax) {
			t.Errorf("%s is taken for syntax %d", b.String(), got)
		}
		out, code := runClassad(t, "", b.String(), "parse")
		if got := strings.Split(strings.TrimSuffix(out, "\n"), "\n"); code != 0 ||
			strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s\n got %q\nwant %q", b.String(), got, want)
		}
	}
}

var manualExample = regexp.MustCompile(`^\$ roost classad eval '(.*)'$`)

// TestClassadManual runs every example in classad(7).
func TestClassadManual(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "man", "classad.7"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain := strings.NewReplacer(`\&`, "", `\(aq`, "'", `\(dq`, `"`, `\-`, "-", `\(ti`, "~", `\(ha`, "^", `\(ga`,
		"`", `\e`, `\`)
	lines, examples := bufio.NewScanner(f), 0
	for lines.Scan() {
		m := manualExample.FindStringSubmatch(plain.Replace(lines.Text()))
		if m == nil || !lines.Scan() {
			continue
		}
		examples++
		a, stdout, stderr := newClassadApp(t, t.TempDir())
		code := a.Run(t.Context(), []string{"roost", "classad", "eval", m[1]})
		if got, want := stdout.String(), plain.Replace(lines.Text())+"\n"; got != want || code != 0 {
			t.Errorf("%s\n got %s%s\nwant %s", m[1], got, stderr, want)
		}
	}
	if examples < 50 {
		t.Errorf("there are %d examples only", examples)
	}
}
