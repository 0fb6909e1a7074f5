package pki

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// issuePool makes an authority in a directory of its own and issues certificates with
// every role to the nodes.
func issuePool(t *testing.T, nodes ...string) map[string]*config.TLSFiles {
	t.Helper()
	dir := t.TempDir()
	if err := Init(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	all := map[string]*config.TLSFiles{}
	for _, name := range nodes {
		files, err := IssueTo(dir, name, peer.DaemonRoles())
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &files
	}
	return all
}

func load(t *testing.T, files *config.TLSFiles) *rpc.Identity {
	t.Helper()
	id, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// connPair returns the ends of a connection with buffers. Over net.Pipe two sides that
// both write would block each other.
func connPair() (net.Conn, net.Conn) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		panic(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		if ends[i], err = net.FileConn(f); err != nil {
			panic(err)
		}
		f.Close()
	}
	return ends[0], ends[1]
}

// doHandshake makes a handshake between two sides and returns the error of each.
func doHandshake(client, server *tls.Config) (ofClient, ofServer error) {
	a, b := connPair()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(b, server)
		err := conn.Handshake()
		if err != nil {
			b.Close()
		}
		done <- err
	}()
	conn := tls.Client(a, client)
	ofClient = conn.Handshake()
	if ofClient != nil {
		a.Close()
	}
	return ofClient, <-done
}

func TestNodesAuthenticate(t *testing.T) {
	files := issuePool(t, "n1", "n2.lab")
	one, two := load(t, files["n1"]), load(t, files["n2.lab"])
	if one.Name != "n1" || len(one.Roles) != len(peer.DaemonRoles()) {
		t.Errorf("got %q, %v", one.Name, one.Roles)
	}
	if c, s := doHandshake(one.TLS(), two.TLS()); c != nil || s != nil {
		t.Errorf("got %v, %v", c, s)
	}
}

func TestForeignCertsRefused(t *testing.T) {
	here := load(t, issuePool(t, "n1")["n1"])
	there := load(t, issuePool(t, "n1")["n1"])
	if c, _ := doHandshake(here.TLS(), there.TLS()); !errors.Is(c, roost.Unauthenticated) ||
		!strings.Contains(c.Error(), "another pool's authority") {
		t.Errorf("a foreign server: got %v", c)
	}
	foreign := there.TLS()
	foreign.VerifyConnection = nil // it would accept every peer
	if _, s := doHandshake(foreign, here.TLS()); !errors.Is(s, roost.Unauthenticated) ||
		!strings.Contains(s.Error(), "another pool's authority") {
		t.Errorf("a foreign client: got %v", s)
	}
	nobody := here.TLS()
	nobody.Certificates = nil
	if _, s := doHandshake(nobody, here.TLS()); s == nil {
		t.Errorf("a client without a certificate was let in")
	}
	old := here.TLS()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, s := doHandshake(old, here.TLS()); s == nil {
		t.Errorf("TLS 1.2 was spoken")
	}
}

func TestExpiry(t *testing.T) {
	files := issuePool(t, "n1", "n2")
	synctest.Test(t, func(t *testing.T) {
		// The bubble's clock is in the year 2000, before the certificates are valid.
		if _, err := Load(files["n1"]); !errors.Is(err, roost.BadConfig) ||
			!strings.Contains(err.Error(), "clock right?") {
			t.Errorf("too early: got %v", err)
		}
		again := issuePool(t, "n1", "n2")
		one, two := load(t, again["n1"]), load(t, again["n2"])
		time.Sleep(NodeValidity + time.Minute)
		if _, err := Load(again["n1"]); !errors.Is(err, roost.BadConfig) ||
			!strings.Contains(err.Error(), "expired on 2000-12-31") {
			t.Errorf("too late: got %v", err)
		}
		if c, _ := doHandshake(one.TLS(), two.TLS()); !errors.Is(c, roost.Unauthenticated) ||
			!strings.Contains(c.Error(), "expired") {
			t.Errorf("a handshake too late: got %v", c)
		}
	})
}

func TestFilesAreChecked(t *testing.T) {
	files := issuePool(t, "n1", "n2")
	dir := filepath.Dir(files["n1"].CA)
	broken := filepath.Join(dir, "broken.pem")
	if err := os.WriteFile(broken, []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open.key")
	text, err := os.ReadFile(files["n1"].Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, text, 0o644); err != nil {
		t.Fatal(err)
	}
	n1 := *files["n1"]
	tests := []struct {
		name  string
		files config.TLSFiles
		kind  roost.ErrorKind
		says  string
	}{
		{"an open key", config.TLSFiles{CA: n1.CA, Certificate: n1.Certificate, Key: open}, roost.BadConfig,
			"others can read it (mode 0644)"},
		{"no key", config.TLSFiles{CA: n1.CA, Certificate: n1.Certificate, Key: dir + "/none"}, roost.NoInput,
			"let the machine join again"},
		{"no certificate", config.TLSFiles{CA: n1.CA, Certificate: dir + "/none", Key: n1.Key}, roost.NoInput, "none"},
		{"no authority", config.TLSFiles{CA: dir + "/none", Certificate: n1.Certificate, Key: n1.Key},
			roost.NoInput, "none"},
		{"a broken authority", config.TLSFiles{CA: broken, Certificate: n1.Certificate, Key: n1.Key}, roost.BadConfig,
			"no certificate in it"},
		{"another's key", config.TLSFiles{CA: n1.CA, Certificate: n1.Certificate, Key: files["n2"].Key},
			roost.BadConfig, "does not match public key: they have to come from the same roost join"},
		{"an authority as a node", config.TLSFiles{CA: n1.CA, Certificate: n1.CA, Key: dir + "/ca.key"},
			roost.BadConfig, "not a node's"},
	}
	for _, tt := range tests {
		if _, err := Load(&tt.files); !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.says)
		}
	}
	if id, err := Load(nil); id != nil || err != nil {
		t.Errorf("no files: got %v, %v", id, err)
	}
}

func TestAuthorityInitOnce(t *testing.T) {
	dir := t.TempDir()
	if _, err := IssueTo(dir, "n1", nil); !errors.Is(err, roost.NoInput) ||
		!strings.Contains(err.Error(), "roost pki init") {
		t.Errorf("without an authority: got %v", err)
	}
	if err := Init(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	if err := Init(dir, "lab"); !errors.Is(err, roost.Conflict) {
		t.Errorf("a second time: got %v", err)
	}
	for _, name := range []string{"", "ca", "../n1", "a b", strings.Repeat("x", 65)} {
		if _, err := IssueTo(dir, name, nil); !errors.Is(err, roost.Invalid) {
			t.Errorf("node %q: got %v", name, err)
		}
	}
	if _, err := IssueTo(dir, "n1", []peer.Role{peer.User}); !errors.Is(err, roost.Invalid) {
		t.Errorf("role user: got %v", err)
	}
	for _, name := range []string{"ca.key", "ca.pem"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if want := map[string]os.FileMode{"ca.key": 0o600, "ca.pem": 0o644}[name]; err != nil ||
			info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v", name, info.Mode(), err)
		}
	}
}
