package enroll

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/man"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		given, host string
		port        int
	}{
		{"10.0.0.1", "10.0.0.1", 9700}, {"10.0.0.1:80", "10.0.0.1", 80}, {"central.example", "central.example", 9700},
		{"[2001:db8::1]:9", "2001:db8::1", 9}, {"2001:db8::1", "2001:db8::1", 9700},
		{"", "", 0}, {"x:y:z", "", 0}, {"x:0", "", 0}, {"x:65535", "", 0}, {"x:port", "", 0}, {":9700", "", 0},
	}
	for _, tt := range tests {
		host, port, err := SplitHostPort(tt.given)
		if host != tt.host && tt.port != 0 || port != tt.port && tt.port != 0 ||
			(tt.port == 0) != errors.Is(err, roost.Usage) {
			t.Errorf("%q: got %q, %d, %v", tt.given, host, port, err)
		}
	}
}

// ports returns the first of six free ports in a row.
func ports(t *testing.T) (base int) {
	t.Helper()
	for base = 20000; base < 40000; base += 7 {
		if checkPortFree("127.0.0.1", base, base+1, base+2, base+3, base+5) == nil {
			return base
		}
	}
	t.Fatal("no six ports in a row are free")
	return 0
}

func TestInitPool(t *testing.T) {
	f := InitOptions{NodePaths: NodePaths{t.TempDir()}, Pool: "lab", Address: joinHostPort("127.0.0.1", ports(t)),
		Server: true}
	n, token, err := Init(f)
	if err != nil {
		t.Fatal(err)
	}
	if n.Pool != "lab" || n.File != f.NodeFile() || len(n.Startds) != 1 || n.AuthorityAt != f.Address ||
		!strings.HasPrefix(token, "rt1") {
		t.Errorf("got %+v, %s", n, token)
	}
	id, err := pki.Load(n.TLS)
	if err != nil || id.Name != n.Name || len(id.Roles) != 5 {
		t.Errorf("got %+v, %v", id, err)
	}
	if _, _, err := Init(f); !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), "roost token") {
		t.Errorf("twice: got %v", err)
	}
	if _, _, err := f.Leave(t.Context()); !errors.Is(err, roost.Conflict) {
		t.Errorf("it leaves: got %v", err)
	}
	// An interrupted attempt continues with the same authority.
	ca, err := os.ReadFile(n.TLS.CA)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(n.File); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Init(f); err != nil {
		t.Errorf("again: got %v", err)
	}
	if now, err := os.ReadFile(n.TLS.CA); err != nil || string(now) != string(ca) {
		t.Errorf("it is another authority, %v", err)
	}
	os.Remove(n.File)
	other := f
	other.Pool = "other"
	if _, _, err := Init(other); !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), "--name lab") {
		t.Errorf("under another name: got %v", err)
	}
}

func TestInitPoolRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, says := range map[string]string{l.Addr().String(): "another program listens there",
		"203.0.113.7": "none of this machine's", "x:y:z": "HOST:PORT"} {
		f := InitOptions{NodePaths: NodePaths{t.TempDir()}, Address: address}
		if _, _, err := Init(f); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", address, err)
		}
		if _, err := os.Stat(f.resolve("etc")); err == nil {
			t.Errorf("%s: it has left something behind", address)
		}
	}
	if _, _, err := Init(InitOptions{NodePaths: NodePaths{t.TempDir()}, Pool: "a b",
		Address: joinHostPort("127.0.0.1", ports(t))}); !errors.Is(err, roost.Usage) {
		t.Errorf("a pool's name: got %v", err)
	}
}

// TestNodeParts checks, for each part, which ports must be free, and the node file.
func TestNodeParts(t *testing.T) {
	reply := &wire.JoinReply{Name: "n1", Pool: "lab", Collectors: []string{"10.0.0.1:9701"},
		Negotiators: []string{"10.0.0.1:9702"}, Authority: "10.0.0.1:9700"}
	for part, roles := range map[ca.NodePart]string{
		ca.Server: "schedd startd", ca.Desktop: "schedd startd", ca.Submit: "schedd",
		ca.Central: "collector negotiator schedd",
	} {
		reply.Part = string(part)
		j := JoinOptions{NodePaths: NodePaths{t.TempDir()}, Part: part}
		if err := j.makeDirs(); err != nil {
			t.Fatal(err)
		}
		n, err := j.writeNodeFile(j.node(reply, "10.0.0.7", 9700), "x")
		if err != nil {
			t.Errorf("%s: %v", part, err)
			continue
		}
		if n.Owner.File != j.resolve("etc/roost/owner.hcl") {
			t.Errorf("%s: the owner's file is %s", part, n.Owner.File)
		}
		var has []string
		for _, r := range n.Roles() {
			has = append(has, string(r))
		}
		var listens []string
		for _, d := range n.Startds {
			listens = append(listens, d.Listen...)
		}
		if n.Collector != nil {
			listens = append(append(listens, n.Collector.Listen...), n.Negotiator.Listen...)
		}
		listens = append(listens, n.Schedd.Listen...)
		var want []string
		for _, port := range j.ports(9700) {
			want = append(want, joinHostPort("10.0.0.7", port))
		}
		if strings.Join(has, " ") != roles || !slices.Equal(listens, want) || !slices.Equal(n.Roles(), part.Roles()) {
			t.Errorf("%s: it is %v and listens on %v, want %s and %v", part, has, listens, roles, want)
		}
		if n.NeedsGuard() != (part == ca.Desktop) || len(n.Negotiators) != 1+len(want)/3 {
			t.Errorf("%s: got guard %v, negotiators %v", part, n.NeedsGuard(), n.Negotiators)
		}
	}
}

// TestDesktopHasGuard checks that a new desktop is paused and has the guard that enforces
// the pause.
func TestDesktopHasGuard(t *testing.T) {
	if d := newDesktop("d1", "10.0.0.7:9703"); !d.NeedsGuard() {
		t.Errorf("no guard watches over it: %+v", d)
	}
}

func TestInstall(t *testing.T) {
	from := t.TempDir()
	for _, name := range programNames() {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	i := InstallOptions{NodePaths: NodePaths{t.TempDir()}, Prefix: "/opt/roost", Program: filepath.Join(from, "roost"),
		Links: map[string]string{"qsub": "roost-q", "qmgr": "roost"}, Completions: map[string]string{"bash": "# words"}}
	n, err := Install(i)
	if err != nil || n < 20 {
		t.Fatalf("got %d, %v", n, err)
	}
	for path, says := range map[string]string{
		"opt/roost/bin/roost-starter": "roost-starter", "opt/roost/bin/qsub": "roost-q",
		"opt/roost/bin/qmgr":                                "roost",
		"opt/roost/share/man/man1/roost-join.1":             "roost join",
		"opt/roost/share/bash-completion/completions/roost": "words",
		"opt/roost/lib/systemd/system/roost.service":        "/opt/roost/bin/roost master",
	} {
		if text, err := os.ReadFile(filepath.Join(i.Root, path)); err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s: got %.80q, %v", path, text, err)
		}
	}
	if n, err := Install(i); n != 0 || err != nil {
		t.Errorf("again: %d have changed, %v", n, err)
	}
	if err := os.WriteFile(filepath.Join(from, "roost"), []byte("newer"), 0o755); err != nil {
		t.Fatal(err)
	}
	if n, err := Install(i); n != 1 || err != nil {
		t.Errorf("a newer program: %d have changed, %v", n, err)
	}
	i.Prefix = "opt"
	if _, err := Install(i); !errors.Is(err, roost.Usage) {
		t.Errorf("a relative prefix: got %v", err)
	}
}

// TestUnits checks the installed units with systemd. A desktop gets the guard's unit
// beside the node's, which it precedes.
func TestUnits(t *testing.T) {
	if got := NodeUnits(true); !slices.Equal(got, []string{"roost.service", "roost-guard.service"}) ||
		!slices.Equal(NodeUnits(false), got[:1]) {
		t.Errorf("a desktop has %v, and others %v", got, NodeUnits(false))
	}
	from, root := t.TempDir(), t.TempDir()
	for _, name := range programNames() {
		if err := os.WriteFile(filepath.Join(from, name), []byte("#!/bin/true\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Install(InstallOptions{Prefix: root, Program: filepath.Join(from, "roost")}); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("SKIPPED: there is no systemd-analyze here, so nobody has looked at the units")
	}
	for _, unit := range NodeUnits(true) {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "--man=no", "verify",
			filepath.Join(root, "lib/systemd/system", unit)).CombinedOutput()
		if err != nil || strings.Contains(string(out), unit) {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestPages checks that the installed manual pages are those of the directory.
func TestPages(t *testing.T) {
	there, err := filepath.Glob("../../man/*.[1-8]")
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := man.ManualPages.ReadDir(".")
	if err != nil || len(there) != len(embedded) {
		t.Errorf("%d pages are there and %d are installed, %v", len(there), len(embedded), err)
	}
}

func TestLeaveRemovesKeys(t *testing.T) {
	p := NodePaths{t.TempDir()}
	if err := p.makeDirs(); err != nil {
		t.Fatal(err)
	}
	ca := t.TempDir()
	if err := pki.Init(ca, "lab"); err != nil {
		t.Fatal(err)
	}
	made, err := pki.IssueTo(ca, "n1", nil)
	if err != nil {
		t.Fatal(err)
	}
	files := p.TLS()
	for from, to := range map[string]string{made.CA: files.CA, made.Certificate: files.Certificate,
		made.Key: files.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	n := p.newNode("n1", "lab")
	n.Collectors, n.Negotiators, n.AuthorityAt = []string{"127.0.0.1:1"}, []string{"127.0.0.1:1"}, "127.0.0.1:1"
	if _, err := p.writeNodeFile(n, "x"); err != nil {
		t.Fatal(err)
	}
	left, authorityErr, err := p.Leave(t.Context())
	if err != nil || authorityErr == nil || left.Name != "n1" {
		t.Fatalf("got %v, %v, %v", left, authorityErr, err)
	}
	for file, want := range map[string]bool{files.Key: false, files.Certificate: false, p.NodeFile(): false,
		p.NodeFile() + ".left": true} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s: got %v", file, err)
		}
	}
}
