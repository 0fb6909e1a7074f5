package web

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/confine"
)

// confinedRole is the first argument of a child that confines itself as the daemon does.
const confinedRole = "confined-web"

// tryFiles confines the process as the daemon of a node. It returns which of the files
// the process can still read or make.
func tryFiles(n *config.Node, program string, files []string) (open []string, err error) {
	if _, err := confine.Apply(fileRights(n, program)); err != nil {
		return nil, err
	}
	for _, file := range files {
		_, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			err = os.WriteFile(file, nil, 0o600)
		}
		if err == nil {
			open = append(open, file)
		}
	}
	return open, nil
}

// runConfined is the child.
func runConfined(args []string) int {
	n := &config.Node{Dir: args[0], Web: &config.WebSettings{}}
	open, err := tryFiles(n, args[1], args[2:])
	if err != nil || json.NewEncoder(os.Stdout).Encode(open) != nil {
		return 1
	}
	return 0
}

// TestW21Files has a child with the rights of the daemon read the files of a pool. It
// gets its own, and neither keys nor queues, logs, homes or passwords.
func TestW21Files(t *testing.T) {
	if missing := confine.Missing(); len(missing) > 0 {
		t.Skipf("SKIPPED: this kernel lacks %v", missing)
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-web-files-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "web/tokens.json"), filepath.Join(dir, "web/new")}
	files := append([]string{"/etc/shadow", "/root/.ssh/id_ed25519", "/home/new", "/tmp/roost-web-new"}, want...)
	for _, name := range []string{"pki/node.key", "schedd/queue.db", "schedd/logins/ca.key", "log/schedd.log",
		"etc/node.hcl", "home/ann/.ssh/id"} {
		files = append(files, filepath.Join(dir, name))
	}
	for _, file := range files {
		if !strings.HasPrefix(file, dir) || strings.HasSuffix(file, "/new") {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(own, append([]string{confinedRole, dir, "/usr/bin/x"}, files...)...).Output()
	var open []string
	if err := errors.Join(err, json.Unmarshal(out, &open)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Join(open, " ") != strings.Join(want, " ") {
		t.Errorf("the daemon reaches %v, want %v", open, want)
	}
}
