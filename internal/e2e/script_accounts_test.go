package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
)

// scriptCondition reports whether a condition of scripts is true.
func scriptCondition(cond string) (bool, error) {
	if module, ok := strings.CutPrefix(cond, "python:"); ok {
		find := "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))"
		return exec.Command("/usr/bin/python3", "-c", find, module).Run() == nil, nil
	}
	if path, ok := strings.CutPrefix(cond, "file:"); ok {
		_, err := os.Stat(path)
		return err == nil, nil
	}
	switch cond {
	case "sandbox":
		return os.Geteuid() == 0, nil
	case "limits":
		h, err := cgroup.Open("/roost/e2e")
		return err == nil && h.Enforcement().Memory, err
	}
	return false, fmt.Errorf("unknown condition %s", cond)
}

// writeAsProgram writes the program as, which runs a command as another user.
func writeAsProgram(t *testing.T, dir string) {
	t.Helper()
	text := "#!/bin/sh\nu=$1; shift; cd / && exec setpriv --reuid $u --regid $u --clear-groups \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "as"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// accountsCmd has the next pool be one of all users, in a directory that they can enter.
func accountsCmd(ts *testscript.TestScript, _ bool, _ []string) {
	s := scriptPoolOf(ts)
	for _, dir := range []string{s.options.Dir, filepath.Dir(ts.Getenv("WORK"))} {
		ts.Check(os.Chmod(dir, 0o755))
	}
	s.options.Dir, s.options.Nodes = filepath.Join(s.options.Dir, "all"), 1
	ts.Setenv("ROOST_DIR", s.options.Dir)
	s.options.Node = &config.Node{
		Name: ts.Getenv("HOST"), Dir: s.options.Dir, Collector: &config.CollectorSettings{},
		Negotiator: &config.NegotiatorSettings{}, Schedd: &config.ScheddSettings{SocketMode: 0o666, AllowRoot: true},
		Startds: []config.StartdSettings{{AllowRoot: true, Name: "n1",
			Resources: roost.Resources{CPU: 4000, Memory: roost.GiB, Disk: roost.GiB}}},
	}
}
