package web

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/confine"
	"github.com/roost-batch/roost/internal/daemon"
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

// otherAccountRole is the first argument of a child that is a web daemon of root's, and
// takes on another account. The directory and the account of the node file follow.
const otherAccountRole = "web-of-other-account"

// runAsOther is the child: a daemon with pages and metrics over TLS.
func runAsOther(dir, account string) int {
	ctx, stop := daemon.SignalContext()
	defer stop()
	n := &config.Node{Name: "n1", Dir: dir, Metrics: &config.MetricsSettings{Web: "127.0.0.1:0"},
		Web: &config.WebSettings{Listen: []string{"127.0.0.1:0"}, URL: "https://localhost", User: account,
			Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}}
	if err := Run(ctx, n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestOtherAccount starts a daemon with a key of TLS that root alone may read. It serves
// pages and metrics with it under another account, the default one too, and owns what a
// daemon of root's has left in its directory.
func TestOtherAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can take on another account")
	}
	byDefault, err := accountOf(&config.WebSettings{})
	if err != nil {
		t.Skipf("SKIPPED: this host has no account for it: %v", err)
	}
	nobody, err := accountOf(&config.WebSettings{User: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]daemonAccount{"": byDefault, "nobody": nobody, "root": {"user root", 0, 0}} {
		t.Run("user "+name, func(t *testing.T) { startAsOther(t, name, want) })
	}
	if byDefault.uid == 0 || byDefault.gid == 0 {
		t.Errorf("the default is %+v", byDefault)
	}
}

func startAsOther(t *testing.T, name string, want daemonAccount) {
	dir, program := otherAccountDir(t, 0o755)
	old := filepath.Join(dir, "web", "tokens.json")
	linked, outside := filepath.Join(dir, "web", "linked"), filepath.Join(dir, "root.txt")
	if err := errors.Join(os.Mkdir(filepath.Dir(old), 0o700), os.WriteFile(old, []byte("[]"), 0o600),
		os.WriteFile(outside, nil, 0o600), os.Link(outside, linked),
		os.Symlink(outside, filepath.Join(dir, "web", "symlink"))); err != nil {
		t.Fatal(err)
	}
	ready, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	var logged bytes.Buffer
	child := exec.CommandContext(t.Context(), program, otherAccountRole, dir, name)
	child.Env, child.ExtraFiles = append(os.Environ(), daemon.ReadyFD+"=3"), []*os.File{to}
	child.Stdout, child.Stderr = &logged, &logged
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	to.Close()
	line, err := bufio.NewReader(ready).ReadString('\n')
	status, statusErr := os.ReadFile(fmt.Sprintf("/proc/%d/status", child.Process.Pid))
	child.Process.Signal(os.Interrupt)
	if ended := child.Wait(); err != nil || ended != nil || line != "ready\n" {
		t.Fatalf("the daemon reports %q, %v, %v:\n%s", line, err, ended, &logged)
	}
	for _, field := range []string{fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", want.uid),
		fmt.Sprintf("Gid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", want.gid), "Groups:\t \n"} {
		if !strings.Contains(string(status), field) {
			t.Errorf("its state lacks %q, %v:\n%s", field, statusErr, status)
		}
	}
	for file, uid := range map[string]int{filepath.Dir(old): want.uid, old: want.uid,
		filepath.Join(dir, "web", "audit.log"): want.uid, outside: 0} {
		var st syscall.Stat_t
		if err := syscall.Lstat(file, &st); err != nil || int(st.Uid) != uid {
			t.Errorf("%s belongs to %d, %v, want %d", file, st.Uid, err, uid)
		}
	}
}

// otherAccountDir returns a directory with a program and a certificate.
func otherAccountDir(t *testing.T, mode os.FileMode) (dir, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "roost-web-account-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "web.test") // the account has to reach the daemon's programs
	if err := errors.Join(os.Chmod(dir, mode), writeCertificate(dir), copyProgram(own, program)); err != nil {
		t.Fatal(err)
	}
	return dir, program
}

// TestUnreachable starts a daemon in a directory that its account cannot enter. It says
// which, and what to do.
func TestUnreachable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can take on another account")
	}
	dir, program := otherAccountDir(t, 0o700)
	out, err := exec.CommandContext(t.Context(), program, otherAccountRole, dir, "nobody").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "user nobody cannot enter "+dir) ||
		!strings.Contains(string(out), "chmod o+x") {
		t.Errorf("%v: %s", err, out)
	}
}

// writeCertificate writes a certificate, and its key that its owner alone may read.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return err
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
