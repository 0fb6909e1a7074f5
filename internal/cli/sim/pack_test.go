package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	smallNodes = "sn,cpu_milli,memory_mib,gpu,model\nn1,16000,65536,2,T4\nn2,16000,65536,2,T4\nn3,32000,131072,4,G2\n"
	smallPods  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n" +
		"p1,4000,8192,1,500,,LS\np2,4000,8192,1,500,,BE\np3,4000,8192,1,1000,,LS\np4,8000,8192,2,1000,,LS\np5,4000,8192,1,700,T4,BE\np6,2000,8192,0,0,,BE\n"
)

// simFiles are small lists, as files in the directory of a call.
func simFiles(t *testing.T, dir string) {
	for name, text := range map[string]string{"nodes.csv": smallNodes, "pods.csv": smallPods,
		"big.csv": smallPods[:strings.Index(smallPods, "p1")] + "p1,4000,8192,8,1000,,LS\n",
		"cut.csv": smallPods[:len(smallPods)-5], "plain.csv": strings.ReplaceAll(smallNodes, ",2,", ",0,")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// packLine is a command on a small cell.
type packLine struct {
	line, out, stderr, file string // what has to be in them; file: in the one that was written
	code                    int
}

func (test packLine) run(t *testing.T) {
	t.Helper()
	a, stdout, stderr := newSimApp(t, t.TempDir())
	simFiles(t, a.Dir)
	code := a.Run(t.Context(), strings.Fields(test.line))
	if code != test.code || !strings.Contains(stdout.String(), test.out) ||
		!strings.Contains(stderr.String(), test.stderr) || test.out == "" && stdout.Len() > 0 {
		t.Errorf("%s: exit status %d, stdout:\n%s\nstderr:\n%s", test.line, code, stdout, stderr)
	}
	text, _ := os.ReadFile(filepath.Join(a.Dir, "out"))
	if !strings.Contains(string(text), test.file) || test.file == "" && len(text) > 0 {
		t.Errorf("%s: it wrote %.200q", test.line, text)
	}
}

// TestSimPack holds what is said of filling a small cell, what goes into files, and what
// is refused.
func TestSimPack(t *testing.T) {
	for _, test := range []packLine{
		{"roost sim pack nodes.csv pods.csv", "pods.csv on nodes.csv: 3 machines with 8 GPUs; 6 tasks of 6 kinds",
			"", "", 0},
		{"roost sim pack nodes.csv pods.csv --seeds 2 --score worst-fit", "worst-fit: each order twice, digest ",
			"", "", 0},
		{"roost sim pack nodes.csv pods.csv --seeds 2 --json --score best-fit,hybrid", `"score": "best-fit"`,
			"", "", 0},
		{"roost sim pack nodes.csv pods.csv --seeds 2 --csv out", "medians of 2 orders", "",
			"fragmentation,43,130,", 0},
		{"roost sim pack nodes.csv pods.csv --seeds 2 --svg out", "medians of 2 orders", "", "<svg", 0},
		{"roost sim pack nodes.csv pods.csv --seeds 0", "", "--seeds 0: it is from 1 to 1000", "", 64},
		{"roost sim pack nodes.csv pods.csv --score first-fit", "", `"first-fit" is none: there are hybrid`, "", 64},
		{"roost sim pack pods.csv nodes.csv", "",
			"pods.csv: line 1: column 1 (name): invalid request: there is no such column", "", 65},
		{"roost sim pack nodes.csv cut.csv", "", "cut.csv: line 7: invalid request: it has another number of columns",
			"", 65},
		{"roost sim pack nodes.csv nowhere", "", "nowhere: no such file or directory", "", 66},
		{"roost sim pack nodes.csv", "", "pack needs a list of nodes and a list of pods", "", 64},
	} {
		test.run(t)
	}
}

// TestSimCompact holds what is said of a small cell, what goes into files, and what is
// refused.
func TestSimCompact(t *testing.T) {
	for _, test := range []packLine{
		{"roost sim compact nodes.csv pods.csv", "nodes.csv, pods.csv: 3 machines, 6 tasks\n\nSCORE ", "", "", 0},
		{"roost sim compact nodes.csv pods.csv --seeds 3 --score best-fit --exact",
			"90th percentile of 3 orders; more is beside best-fit", "", "", 0},
		{"roost sim compact nodes.csv pods.csv --seeds 3 --ways", "nothing reclaimed ", "", "", 0},
		{"roost sim compact nodes.csv pods.csv --seeds 3 --ways --json", `"name": "powers of two"`, "", "", 0},
		{"roost sim compact nodes.csv pods.csv --seeds 3 --csv out", "All was done twice, digest ",
			"", "best-fit,best-fit,3,", 0},
		{"roost sim compact nodes.csv pods.csv --seeds 3 --svg out --ways", "MACHINES", "", "<svg", 0},
		{"roost sim compact nodes.csv big.csv", "", "on 1 times its machines the cell has no room for 1 of 1 tasks",
			"", 65},
		{"roost sim compact nodes.csv pods.csv --reserved 80", "", "--reserved 80: it is two whole numbers", "", 64},
		{"roost sim compact nodes.csv pods.csv --order easy", "", "--order has no meaning for roost sim compact",
			"", 64},
		{"roost sim compact nodes.csv", "", "nodes.csv: ", "", 65},
	} {
		test.run(t)
	}
}
