package translate

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
)

// FuzzFile checks that any input either becomes a readable job file or is refused with a
// reason.
func FuzzFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err == nil && !strings.HasSuffix(file, ".hcl") {
			f.Add(string(src))
		}
	}
	for _, s := range []string{
		"#SBATCH -o %%%a%j\n$${x} %%{y} ${\n", "#SBATCH --array=0-9999999\n#SBATCH -N 4\nx\n",
		"#SBATCH -A \"a b\"\n#SBATCH -c 99999999\nx\n", "#PBS -l select=2:ncpus=0:mem=9pb+1\nx\n",
		"doCker_imAge=0\nqueue ",
		"executable = x\na = $(b)$(b)\nb = $(a)$(a)\noutput = $(a)\nqueue x, y from (\n$(a) 1\n)\n",
		"executable=$$(x)$F(y)\narguments=\"' $(Process)\"\nenvironment=A=$(z:$(Process));B\nqueue 99999999 in " +
			"[1:](a)\nqueue x matching a b\n",
		"#PBS -J 5-5 -W umask=9 -N \"${x}\"\n\u0301x\n  y\n", "#SBATCH -J END\nEND\nEND_\n\tEND__\n",
		"#SBATCH -C \"a&(b|!c)\" -w n[1-3]\n `\n\f\v\a\n", "#PBS -v A=\"$x%{\\\" -q é\nx",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		r, err := TranslateFile([]byte(src), SourceOptions{Name: "x.sh"})
		if err != nil {
			if !errors.Is(err, ErrNothing) && !errors.Is(err, roost.Invalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		if r.Jobs == 0 {
			t.Fatal("no job and no error")
		}
		if r.From == Condor {
			parseJobFile(t, r.Text)
			return
		}
		if !manyTasksSource.MatchString(r.Text) { // a million tasks are valid, but take seconds
			checkScripts(t, src, r.Text)
		}
	})
}

var manyTasksSource = regexp.MustCompile(`(count|gang|range|for_each|indexes).*[0-9]{5}`)

// FuzzDescription checks that any submit description becomes jobs or is refused. The
// columns of a job have a value for each task.
func FuzzDescription(f *testing.F) {
	for _, d := range descriptions {
		f.Add(d.text, "a=$(b)", "c = $(a)")
	}
	f.Add("if defined\ninclude : $(x)\nendif\nx = $F$Fn(a)$INT($(x))\nqueue $(x) in [::0] ()", "queue=1", "+x=$$(y)")
	f.Add("a @=b\n@b\nqueue 2 a,b from [-1:] list.txt\nqueue a matching any [1] *", "x = $SUBSTR(a,-9,-9)", "queue")
	f.Fuzz(func(t *testing.T, text, macro, appended string) {
		if strings.ContainsAny(macro+appended, "\x00\n\r") {
			return
		}
		opts := tableOptions()
		opts.Macros, opts.Append = []string{macro}, []string{appended}
		r, err := TranslateFile(tableSource(text), opts)
		if err != nil {
			if !errors.Is(err, ErrNothing) && !errors.Is(err, roost.Invalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, items := range r.Items {
			for i, c := range items.Columns {
				if len(c) != items.Rows {
					t.Fatalf("%s has %d values for %d rows", items.Names[i], len(c), items.Rows)
				}
			}
		}
		if r.Jobs > 20 || manyTasksSource.MatchString(r.Text) {
			return
		}
		jobs, diags := submit.ParseFile([]byte(r.Text), submit.ParseOptions{Filename: "x", Dir: "/data/ann",
			Home: "/home/ann", Items: r.Items, Environ: []string{"HOME=/home/ann"}})
		if diags.HasErrors() && len(r.Items) == 0 && !strings.Contains(r.Text, "file(") {
			t.Fatalf("%v\n%s", diags, r.Text)
		}
		for _, j := range jobs {
			for _, c := range j.Columns {
				if len(c.Values) != j.Count {
					t.Fatalf("%s has %d values for %d tasks", c.Name, len(c.Values), j.Count)
				}
			}
		}
	})
}

// checkScripts checks that the text can be read, and that the last command of a script is
// unchanged in it.
func checkScripts(t *testing.T, src, text string) {
	jobs := parseJobFile(t, text)
	last := ""
	for _, l := range strings.Split(src, "\n") {
		if l != "" && l[0] > ' ' && l[0] < 0x7f && l[0] != '#' && isNormalized(l) {
			last = l
		}
	}
	script, ok := jobs[0].Ad.Str(roost.AttrScript)
	if !ok { // it is passed as an argument
		args, _ := jobs[0].Ad.Strings(roost.AttrArguments)
		script = strings.ReplaceAll(strings.Join(args, "\n"), "$$", "$")
	}
	if last != "" && !strings.Contains(src, "\\\n") && !slices.Contains(strings.Split(script, "\n"), last) {
		t.Fatalf("%q is not in the script any more: %q\n%s", last, script, text)
	}
}

// isNormalized reports whether HCL leaves the characters of a line unchanged. It
// normalizes accented letters.
func isNormalized(l string) bool {
	return !strings.ContainsFunc(l, func(r rune) bool { return r > 0x7f })
}
