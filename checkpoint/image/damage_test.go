package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
)

// TestDamage checks that an image with any damage on disk is refused, so that the one
// before it is restored.
func TestDamage(t *testing.T) {
	data, _ := write(t, newStaging(t, map[string]string{"criu/core-1.img": "core", "io/stdout": "text",
		"scratch.tar": strings.Repeat("tar", 3000)}))
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	damage.ForEach(t, path, 100, func(what string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := verifyImage(bytes.NewReader(text), testKey(), testWant()); !errors.Is(err, roost.Invalid) {
			t.Fatalf("%s: got %v, want a bad image", what, err)
		}
	})
}
