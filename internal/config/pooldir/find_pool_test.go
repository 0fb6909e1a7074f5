package pooldir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func testEnvironment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestPoolDir(t *testing.T) {
	tests := []struct {
		dir  string
		env  []string
		want string
	}{
		{"/d", []string{"ROOST_DIR", "/r", "XDG_STATE_HOME", "/x", "HOME", "/h"}, "/d"},
		{"", []string{"ROOST_DIR", "/r", "XDG_STATE_HOME", "/x", "HOME", "/h"}, "/r"},
		{"", []string{"XDG_STATE_HOME", "/x", "HOME", "/h"}, "/x/roost"},
		{"", []string{"XDG_STATE_HOME", "relative", "HOME", "/h"}, "/h/.local/state/roost"},
		{"", []string{"HOME", "/h"}, "/h/.local/state/roost"},
	}
	for _, tt := range tests {
		if got, err := PoolDir(tt.dir, testEnvironment(tt.env...)); got != tt.want || err != nil {
			t.Errorf("%q, %v: got %q, %v; want %q", tt.dir, tt.env, got, err, tt.want)
		}
	}
	if _, err := PoolDir("", testEnvironment()); !errors.Is(err, roost.Usage) {
		t.Errorf("without anything: got %v", err)
	}
}

// makeSocket makes a file at the path of the socket of a pool in dir.
func makeSocket(t *testing.T, run string) string {
	t.Helper()
	path := filepath.Join(run, SocketName)
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return "unix:" + path
}

// TestPilotsDir checks that a provisioner works in its user's directory, and for each
// pool in another one.
func TestPilotsDir(t *testing.T) {
	for want, c := range map[string]struct {
		dir string
		env []string
	}{
		"/h/.local/state/roost-pilots":                 {"", []string{"HOME", "/h"}},
		"/x/roost-pilots":                              {"", []string{"HOME", "/h", "XDG_STATE_HOME", "/x"}},
		"/h/.local/state/roost-pilots/pools/var-roost": {"", []string{"HOME", "/h", "ROOST_DIR", "/var/roost"}},
		"/h/.local/state/roost-pilots/pools/d":         {"/d", []string{"HOME", "/h"}},
	} {
		if got, err := PilotsDir(c.dir, testEnvironment(c.env...)); got != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestFindPool(t *testing.T) {
	home, named, system, empty := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	inHome := makeSocket(t, filepath.Join(home, ".local/state/roost/run"))
	inNamed := makeSocket(t, filepath.Join(named, "run"))
	inSystem := makeSocket(t, system)
	tests := []struct {
		name, dir, system string
		env               []string
		want              string
	}{
		{"--dir first", named, system, []string{"ROOST_DIR", home, "HOME", home}, inNamed},
		{"then ROOST_DIR", "", system, []string{"ROOST_DIR", named, "HOME", home}, inNamed},
		{"then home", "", system, []string{"HOME", home}, inHome},
		{"then the host's", "", system, []string{"HOME", empty}, inSystem},
		{"the host's without a home", "", system, nil, inSystem},
		{"--dir or nothing", empty, system, []string{"HOME", home}, ""},
		{"ROOST_DIR or nothing", "", system, []string{"ROOST_DIR", empty, "HOME", home}, ""},
		{"nowhere", "", empty, []string{"HOME", empty}, ""},
	}
	for _, tt := range tests {
		host := hostPaths{tt.system, filepath.Join(empty, "node.hcl")}
		got, err := searchPool(tt.dir, testEnvironment(tt.env...), host)
		if got != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, err, tt.want)
		}
		if tt.want == "" && (!errors.Is(err, roost.Unavailable) ||
			!strings.Contains(err.Error(), "start one with: roost up")) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// TestStartAdvice checks that a user is told to start a pool only on a machine that
// belongs to none.
func TestStartAdvice(t *testing.T) {
	own, login := "start one with: roost up", "roost token --user"
	for _, tt := range []struct{ name, host, dir, want string }{
		{"no pool", "", "", own},
		{"a pool of roost up", "", UpNodeFileHeader + "\nname = \"a\"\nschedd {\n}\n", own},
		{"an execute node", "name = \"a\"\nstartd \"a\" {}\n", "", login},
		{"a submit node", "name = \"a\"\n  schedd {\n  }\n", "", "systemctl start roost"},
		{"a directory of an execute node", "", "# schedd\nstartd \"a\" {}\n", login},
		{"a directory of a submit node", "", "schedd {}\n", "start it with: roost master --config "},
	} {
		dir := t.TempDir()
		host := hostPaths{filepath.Join(dir, "run"), filepath.Join(dir, "node.hcl")}
		home := filepath.Join(dir, ".local/state/roost")
		for file, text := range map[string]string{host.nodeFile: tt.host, filepath.Join(home, "etc/node.hcl"): tt.dir} {
			if text == "" {
				continue
			}
			err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := searchPool("", testEnvironment("HOME", dir), host)
		if !errors.Is(err, roost.Unavailable) || !strings.Contains(err.Error(), tt.want) ||
			tt.want != own && strings.Contains(err.Error(), "roost up") {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"lab7.example.org": "lab7", "": "localhost", "-x": "x", "my host[1]": "myhost1", "日本": "localhost",
		strings.Repeat("a", 100): strings.Repeat("a", 64),
	} {
		if got := NodeNameOf(in); got != want || !IsValidName(got) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestGPUsOfSeveral checks that two startds of a host use the same GPUs only if both are
// configured so.
