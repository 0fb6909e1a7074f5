package jobtext

import (
	"strings"
	"testing"
	"time"
)

// TestParse reads job files of several formats, good and bad.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		format, text string
		jobs, line   int
		want         string
	}{
		"HCL":         {"hcl", "job \"a\" {\n  command = [\"true\"]\n  count = 3\n}\n", 1, 0, `JobName = "a"`},
		"PBS":         {"pbs", "#PBS -N night\n#PBS -l walltime=1:00:00\nsleep 1\n", 1, 0, `JobName = "night"`},
		"Slurm":       {"auto", "#!/bin/sh\n#SBATCH -J night\nsleep 1\n", 1, 0, `JobName = "night"`},
		"a mistake":   {"hcl", "job \"a\" {\n  command = [\"true\"]\n  cpus = \"x\"\n}\n", 0, 3, "^^^"},
		"no HCL":      {"hcl", "job \"a\" {", 0, 1, "closed"},
		"nothing":     {"hcl", "", 0, 0, "empty"},
		"no dialect":  {"cobol", "x", 0, 0, "no dialect"},
		"no batch":    {"auto", "echo hello\n", 0, 0, "no line begins"},
		"no files":    {"hcl", "job \"a\" {\n  script = file(\"/etc/passwd\")\n}\n", 0, 2, ""},
		"no list":     {"hcl", "job \"a\" {\n  command = [\"echo\", join(\" \", files(\"/etc/*\"))]\n}\n", 0, 2, ""},
		"no variable": {"hcl", "job \"a\" {\n  command = [\"echo\", getenv(\"HOME\")]\n}\n", 0, 2, ""},
	} {
		r := Parse(Source{Text: c.text, Format: c.format, User: "ann", Home: "/home/ann", Dir: "/home/ann",
			Now: time.Now()})
		text := r.Text
		if len(r.Jobs) > 0 {
			text = r.Jobs[0].Ad
		}
		if len(r.Jobs) != c.jobs || !strings.Contains(text, c.want) || strings.Contains(text, "root:") {
			t.Errorf("%s: got %+v, want %q", name, r, c.want)
		}
		if c.jobs == 0 && (len(r.Diagnostics) == 0 || c.line > 0 && r.Diagnostics[0].Line != c.line) {
			t.Errorf("%s: got %+v, want line %d", name, r.Diagnostics, c.line)
		}
	}
}
