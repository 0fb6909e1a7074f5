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
