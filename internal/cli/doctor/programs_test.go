package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingPrograms: what lacks beside roost is named, and what only some nodes have is
// not.
func TestMissingPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"roost", "roost-daemon", "roost-node", "roost-q", "roost-ranks", "roost-starter"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := examinePrograms(dir)
	if got.Level != levelWarning || !strings.Contains(got.Text, "has no roost-negotiator:") || got.Hint == "" {
		t.Errorf("got %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "roost-negotiator"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := examinePrograms(dir); got.Level != levelOK || !strings.Contains(got.Text, dir) {
		t.Errorf("got %+v", got)
	}
}
