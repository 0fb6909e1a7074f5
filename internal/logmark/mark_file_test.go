package logmark

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMark checks that a mark is read as it was written last. A missing mark, a damaged
// one, and that of another kind of log count as none.
func TestMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.mark")
	if body, err := Read(path, "testmark", 4); body != nil || err != nil {
		t.Fatalf("without a file: %q, %v", body, err)
	}
	m, err := Open(path, "testmark")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, text := range []string{"0001", "0002"} {
		if err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if body, err := Read(path, "testmark", 4); string(body) != text || err != nil {
			t.Fatalf("got %q, %v, want %q", body, err, text)
		}
	}
	if body, err := Read(path, "markmark", 4); body != nil || err != nil {
		t.Errorf("of another kind: %q, %v", body, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(whole) {
		b := append([]byte(nil), whole...)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if body, err := Read(path, "testmark", 4); body != nil || err != nil {
			t.Fatalf("bit %d: %q, %v", bit, body, err)
		}
	}
}
