package idle

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHasConsole(t *testing.T) {
	for _, test := range []struct {
		name, keys, seat string
		want             bool
	}{
		{"a keyboard", "402000000 3803078f800d001 feffffdfffefffff fffffffffffffffe", "", true},
		{"a mouse", "1f0000 0 0 0 0", "", true},
		{"a touch screen", "400 0 0 0 0 0", "", true},
		{"a power button", "10000000000000 0", "", false},
		{"nothing", "0", "", false},
		{"a seat with a screen", "0",
			"# This is private data.\nIS_SEAT0=1\nCAN_MULTI_SESSION=1\nCAN_TTY=1\nCAN_GRAPHICAL=1\n", true},
		{"a seat without", "0", "IS_SEAT0=1\nCAN_GRAPHICAL=0\n", false},
	} {
		dir := t.TempDir()
		device := filepath.Join(dir, "input", "event0", "device", "capabilities")
		if err := os.MkdirAll(device, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "seats"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{filepath.Join(device, "key"): test.keys + "\n",
			filepath.Join(dir, "seats", "seat0"): test.seat} {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := hasConsole(filepath.Join(dir, "input"), filepath.Join(dir, "seats")); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
