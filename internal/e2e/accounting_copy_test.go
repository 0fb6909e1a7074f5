package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// copiedParts is what roost accounting copy --json prints.
type copiedParts struct {
	Parts []struct {
		Month  string
		Rows   int64
		Digest string
	}
}

// TestAccountingCopy copies the accounts of a pool to PostgreSQL and back, each time
// after a copy that was killed. The digests are the same both ways, and the accountant
// goes on with each store where it was.
func TestAccountingCopy(t *testing.T) {
	t.Parallel()
	programs := program(t)
	address := startDatabase(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "pool")
	options := PoolOptions{Roost: programs, Dir: dir, Nodes: 1, CPUs: 4}
	s := &accountedPool{T: t, ctx: ctx}
	s.start(options)
	s.submit(30)
	s.submit(5)
	want := s.awaitAttempts(nil)
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	config := filepath.Join(dir, "copy.hcl")
	files := filepath.Join(dir, "accountant")
	setDirectory := func(to string) {
		text := fmt.Sprintf("name = \"n1\"\ncollector {}\nnegotiator {}\naccountant {\n  dir = %q\n  "+
			"database = %q\n}\n", to, address)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copyStore := func(args ...string) (p copiedParts) {
		out := s.command(0, append([]string{"accounting", "copy", "--json", "--config", config}, args...)...)
		if err := json.Unmarshal([]byte(out), &p); err != nil || len(p.Parts) < 2 {
			t.Fatalf("copy %v: %v, %s", args, err, out)
		}
		return p
	}
	setDirectory(files)
	s.killCopy(programs, config)
	there := copyStore()
	s.command(75, "accounting", "copy", "--config", config)
	s.command(75, "accounting", "copy", "--back", "--config", config)
	back := filepath.Join(dir, "back")
	setDirectory(back)
	s.killCopy(programs, config, "--back")
	again := copyStore("--back")
	if !reflect.DeepEqual(there, again) {
		t.Errorf("the parts were\n%+v\nand are\n%+v", there, again)
	}
	if err := os.Rename(files, files+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(back, files); err != nil {
		t.Fatal(err)
	}
	s.start(options)
	s.awaitAttempts(want)
	s.submit(5)
	if got := s.awaitAttempts(nil); len(got) != len(want)+5 {
		t.Errorf("there are %d attempts, want %d and five", len(got), len(want))
	}
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// killCopy starts a copy, and kills it when it has begun to write.
func (s *accountedPool) killCopy(program, config string, args ...string) {
	s.Helper()
	c := exec.CommandContext(s.ctx, program, append([]string{"accounting", "copy", "--config", config}, args...)...)
	c.Env = append(os.Environ(), "ROOST_DIR="+s.pool.Dir)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	first := make([]byte, 1)
	if n, err := out.Read(first); n == 0 { // of the line about the first part
		s.Fatalf("the copy printed nothing: %v", err)
	}
	c.Process.Signal(syscall.SIGKILL)
	if err := c.Wait(); err == nil {
		s.Log("the copy had ended before it was killed")
	}
}

// startDatabase starts a server of PostgreSQL, and returns the address of an empty
// database.
func startDatabase(t *testing.T) string {
	t.Helper()
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(paths) == 0 {
		t.Skip("SKIPPED: PostgreSQL's server is not installed (apt-get install postgresql)")
	}
	bin := filepath.Dir(paths[len(paths)-1])
	dir, err := os.MkdirTemp("/tmp", "roost-postgres-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := func(program string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, program), args...)
		c.Dir, c.Env = dir, append(os.Environ(), "LC_ALL=C")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
		if os.Geteuid() == 0 { // the server refuses root
			c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		}
		return c
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	out, err := run("initdb", "-D", data, "-U", "roost", "-A", "trust", "-E", "UTF8", "-N").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	server := run("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGINT)
		server.Wait()
	})
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		out, err = run("createdb", "-h", dir, "-U", "roost", "accounts").CombinedOutput()
		return err == nil || strings.Contains(string(out), "already exists")
	}) {
		t.Fatalf("createdb: %v: %s", err, out)
	}
	return "postgres://roost@/accounts?host=" + dir
}
