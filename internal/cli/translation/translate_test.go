package translation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTranslate holds where the job file goes, what is said beside it, and the exit
// status.
func TestTranslate(t *testing.T) {
	const script = "#!/bin/sh\n#SBATCH --time=10\n#SBATCH --qos=long\necho hello\n"
	for _, test := range []struct {
		line, stdin, out, stderr string // out and stderr: what has to be in them
		code                     int
	}{
		{"roost translate run.slurm", "", `walltime = "10m"`,
			"run.slurm: 1 thing not carried over, 1 is different here: see the comments\n", 0},
		{"roost translate -", script, `job "job" {`, "standard input: 1 thing not carried over", 0},
		{"roost translate --from pbs -", script, "#SBATCH --time=10",
			"standard input: 1 is different here: see the comments", 0},
		{"roost translate -o new.hcl run.slurm", "", "", "see the comments", 0},
		{"roost translate -o old.hcl run.slurm", "", "",
			"old.hcl is there already\nname another file, or write over it with --force\n", 73},
		{"roost translate -o old.hcl --force run.slurm", "", "", "see the comments", 0},
		{"roost translate -o nowhere/x.hcl run.slurm", "", "", "no such file or directory", 73},
		{"roost translate nowhere", "", "", "nowhere: no such file or directory", 66},
		{"roost translate -", "#!/bin/sh\necho hello\n",
			"", "standard input: nothing to translate: no line begins with #SBATCH or #PBS", 1},
		{"roost translate --from slurm -", "# nothing\n", "", "nothing to translate: the script has no commands", 1},
		{"roost translate -", "#!/bin/sh\r\n#PBS -N x\r\n", "", "standard input: line 1: it ends in CR LF", 65},
		{"roost translate -", "\x7fELF\x00", "", "line 1: a NUL stands there", 65},
		{"roost translate -", "#PBS -N x\n" + strings.Repeat("echo\n", 1<<18), "", "at most 1MiB are translated", 65},
		{"roost translate --from slrum -", script,
			"", "there is no such dialect\nthere are pbs, torque, slurm, condor; did you mean slurm?", 64},
	} {
		a, stdout, stderr := newJobsApp(t, t.TempDir())
		for name, text := range map[string]string{"run.slurm": script, "old.hcl": "old\n"} {
			if err := os.WriteFile(filepath.Join(a.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a.Stdin = strings.NewReader(test.stdin)
		code := a.Run(t.Context(), strings.Fields(test.line))
		if code != test.code || !strings.Contains(stdout.String(), test.out) ||
			!strings.Contains(stderr.String(), test.stderr) || test.out == "" && stdout.Len() > 0 {
			t.Errorf("%s: exit status %d, stdout:\n%s\nstderr:\n%s", test.line, code, stdout, stderr)
		}
		for _, name := range []string{"new.hcl", "old.hcl"} {
			text, _ := os.ReadFile(filepath.Join(a.Dir, name))
			written := strings.Contains(string(text), "echo hello")
			if want := code == 0 && strings.Contains(test.line, name); written != want {
				t.Errorf("%s: %s holds %q", test.line, name, text)
			}
		}
	}
}
