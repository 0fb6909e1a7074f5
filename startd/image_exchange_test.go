package startd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHalfLink(t *testing.T) {
	dir := t.TempDir()
	if got := halfLink(dir); got != unknownLink {
		t.Errorf("without links: %d", got)
	}
	for name, text := range map[string]string{"eth0": "1000\n", "eth1": "10000\n", "down": "-1\n", "odd": "x"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "speed"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := halfLink(dir); got != 625_000_000 {
		t.Errorf("with a link of 10 Gbit/s: %d", got)
	}
}
