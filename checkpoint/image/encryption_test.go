package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEncrypted searches an image for data of the task's memory, files and header. None
// of them may be found without the key.
func TestEncrypted(t *testing.T) {
	secret := "the value of a secret variable"
	dir := newStaging(t, map[string]string{"criu/pages-1.img": secret + strings.Repeat("\x00", 1000),
		"scratch.tar": secret, "io/stdout": secret})
	h := testHeader()
	h.Notes["before"] = secret
	var first, again bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &again} {
		if _, err := WriteDirectory(out, dir, h, testKey()); err != nil {
			t.Fatal(err)
		}
	}
	// the last is the magic number of zstd
	for _, word := range []string{secret, "pages-1.img", h.Node + `"`, h.Job, "\x28\xb5\x2f\xfd"} {
		if bytes.Contains(first.Bytes(), []byte(word)) {
			t.Errorf("%q is in it", word)
		}
	}
	// Two images of the same contents share no key stream: their difference is not that
	// of the plain texts.
	start := len(imageMagic) + 2 + saltSize + 4
	same := 0
	for i := start; i < min(first.Len(), again.Len()); i++ {
		if first.Bytes()[i] == again.Bytes()[i] {
			same++
		}
	}
	if same > first.Len()/20 {
		t.Errorf("%d of %d bytes of two images are the same", same, first.Len())
	}
}

// TestEarlierVersion reads a file of the release before, which was authenticated and not
// encrypted. That release made the file.
func TestEarlierVersion(t *testing.T) {
	data, err := os.ReadFile("testdata/version1")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "new")
	h, err := ReadDirectory(bytes.NewReader(data), to, testKey(), testWant())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to + "/io/stdout")
	if h.Node != "n1" || err != nil || string(text) != "line\n" {
		t.Errorf("got %+v, %q, %v", h, text, err)
	}
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		if _, err := verifyImage(bytes.NewReader(changed), testKey(), testWant()); err == nil {
			t.Fatalf("a change at %d passed", i)
		}
	}
}
