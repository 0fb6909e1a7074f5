package starterclient_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// TestNestedPackages checks what tasks see of packages that an ordinary user's startd has
// unpacked. It runs itself again as that user.
func TestNestedPackages(t *testing.T) {
	if os.Getenv(nestedVariable) == "" {
		runAsNobody(t)
		return
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	root := filepath.Join(dir, "package")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "name"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := spawnNested(t)
	for i, at := range []string{"/roost-a", "/opt/roost/a", "/roost-a"} {
		o := shellCmd(uint32(i+1), "cat "+at+"/name; echo mine 2>/dev/null >"+at+"/name || cat "+at+
			"/name; ls -d /usr /etc; echo x >/dev/null && echo device")
		o.Sandbox.TempDir, o.Cwd = os.Getenv(nestedVariable)+"/tmp", "/"
		o.Sandbox.Packages = []proto.PackageMount{{Root: root, Inside: at}}
		b.begin(o)
		exit := b.end()
		if got := b.read(o.Attempt, false); got != "a\na\n/etc\n/usr\ndevice\n" {
			t.Errorf("at %s: got %q (%+v, stderr %q)", at, got, exit, b.read(o.Attempt, true))
		}
		b.DiscardAttempt(o.Attempt)
	}
	if text, err := os.ReadFile(filepath.Join(root, "name")); err != nil || string(text) != "a\n" {
		t.Errorf("the package was changed: %q, %v", text, err)
	}
}
