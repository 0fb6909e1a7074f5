package flows

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// testFiles are the DAG files of the tests.
func testFiles() map[string]string {
	return map[string]string{
		"diamond.dag": "JOB A d.sub\nJOB B d.sub\nJOB C d.sub\nJOB D d.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n",
		"d.sub":       "executable = /bin/true\nqueue\n",
		"bad.dag":     "JOB A d.sub\nRETYR A 3\nPARENT A CHILD b\nJOB B \"d.sub\n",
		"missing.dag": "JOB A none.sub\nJOB B none.sub\nPARENT A CHILD B\n",
		"cycle.dag":   "JOB A d.sub\nJOB B d.sub\nJOB C d.sub\nPARENT A CHILD B\nPARENT B CHILD C\nPARENT C CHILD B\n",
		"complex.dag": "FINAL fin d\nPROVISIONER BANK d\nSERVICE V1 d\nSERVICE V2 d\nJOB A d\nJOB B d\nJOB C d\n" +
			"SUBDAG EXTERNAL D sub.dag\nSUBDAG EXTERNAL E sub.dag\nSPLICE S sub/diamond.dag\nPARENT A B CHILD D E\n" +
			"WEAK PARENT D E CHILD S\n",
		"sub/diamond.dag": "INCLUDE diamond.dag\n",
		"sub/top.dag":     "INCLUDE names.inc\n",
		"sub/names.inc":   "JOB A a.sub\n",
		"sub/a.sub":       "queue\n",
		"good.hcl": "flow \"good\" {\n  node \"A\" { job = \"d.sub\" }\n  splice \"S\" {\n" +
			"    file  = \"diamond.dag\"\n" +
			"    after = [node.A]\n  }\n}\n",
		"wrong.hcl": "flow \"wrong\" {\n  node \"A\" {\n    job   = \"none.sub\"\n    after = [\"S+E\"]\n  }\n" +
			"  splice \"S\" { file = \"diamond.dag\" }\n  node \"B\" {\n    job   = \"none.sub\"\n" +
			"    retri = 3\n  }\n}\n",
		"ring.hcl": "flow \"ring\" {\n  node \"A\" {\n    job   = \"d.sub\"\n    after = [node.B]\n  }\n" +
			"  node \"B\" {\n" +
			"    job      = \"d.sub\"\n    after    = [node.A]\n    category = \"big\"\n  }\n}\n",
	}
}

// TestFlowCommands holds what the commands print, which the golden file shows; -update
// writes it.
func TestFlowCommands(t *testing.T) {
	dir := t.TempDir()
	for name, text := range testFiles() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for _, line := range []string{"roost flow check diamond.dag", "roost flow check bad.dag",
		"roost flow check missing.dag",
		"roost flow check --no-files missing.dag complex.dag", "roost flow check missing.dag bad.dag none.dag sub",
		"roost flow check --use-dag-dir sub/top.dag", "roost flow check sub/top.dag",
		"roost flow check --json diamond.dag bad.dag", "roost flow check --json --no-files complex.dag",
		"roost flow dot complex.dag", "roost flow dot cycle.dag", "roost flow dot --no-files diamond.dag",
		"roost flow check good.hcl wrong.hcl ring.hcl", "roost flow dot good.hcl", "roost flow check",
		"roost flow chekc x", "condor_dag_checker diamond.dag",
		"condor_dag_checker bad.dag missing.dag",
		"condor_dag_checker -STRICT missing.dag", "condor_dag_checker -stat complex.dag",
		"condor_dag_checker --json cycle.dag",
		"condor_dag_checker -JSON bad.dag", "condor_dag_checker -NoJoin -statistics complex.dag",
		"condor_dag_checker -use sub/top.dag", "condor_dag_checker -json -stat x", "condor_dag_checker",
		"condor_dag_checker -nothing x", "condor_dag_checker -h"} {
		a, stdout, stderr := clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{FlowCommand(),
			CheckerCommand()}))
		a.Dir = dir
		code := a.Run(t.Context(), strings.Fields(line))
		fmt.Fprintf(&b, "$ %s\n%s", line, stdout)
		for _, l := range strings.SplitAfter(stderr.String(), "\n") {
			if l != "" {
				b.WriteString("! " + l)
			}
		}
		if code != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", code)
		}
		b.WriteString("\n")
	}
	clitest.CompareGolden(t, "flows", b.String())
}
