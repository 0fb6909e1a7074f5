package image

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/roost-batch/roost"
)

func testKey() []byte { return bytes.Repeat([]byte{7}, KeySize) }

func testHeader() Header {
	return Header{Job: "12.host", Index: 3, Attempt: 2, Sequence: 5, UID: 1000, GID: 100, Node: "n1",
		Time: time.Unix(1e9, 5), Notes: map[string]string{"a": "b"}}
}

func testWant() ExpectedImage { return ExpectedImage{Job: "12.host", Index: 3, UID: 1000, Sequence: 5} }

// newStaging makes a directory like the result of a dump.
func newStaging(t testing.TB, tree map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tree {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sampleEntries() map[string]string {
	noise := make([]byte, 3<<20)
	rand.Read(noise)
	return map[string]string{
		"criu/pages-1.img": string(noise), "criu/core-1.img": "core", "criu/empty.img": "",
		"io/stdout": strings.Repeat("line\n", 1000),
		"io/stderr": "", "scratch.tar": strings.Repeat("x", 2<<20),
	}
}

func write(t testing.TB, dir string) ([]byte, WriteResult) {
	t.Helper()
	var out bytes.Buffer
	sum, err := WriteDirectory(&out, dir, testHeader(), testKey())
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), sum
}

func TestRoundTrip(t *testing.T) {
	tree := sampleEntries()
	data, sum := write(t, newStaging(t, tree))
	if int64(len(data)) != sum.Size {
		t.Errorf("size: got %d, want %d", sum.Size, len(data))
	}
	to, want := filepath.Join(t.TempDir(), "new"), testWant()
	want.MAC = sum.MAC
	h, err := ReadDirectory(iotest.HalfReader(bytes.NewReader(data)), to, testKey(), want)
	if err != nil {
		t.Fatal(err)
	}
	if h.Node != "n1" || h.Raw != sum.Raw || h.Entries != len(tree) || h.Notes["a"] != "b" ||
		!h.Time.Equal(testHeader().Time) {
		t.Errorf("header: got %+v", h)
	}
	for name, text := range tree {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != text {
			t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(text))
		}
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: got %v, %v", info.Mode(), err)
	}
	if _, err := verifyImage(bytes.NewReader(data), testKey(), want); err != nil {
		t.Error(err)
	}
}

// TestAnyChange flips bits and cuts the file at many places. Each must be refused, and no
// file may remain on disk.
func TestAnyChange(t *testing.T) {
	data, _ := write(t, newStaging(t, map[string]string{"criu/core-1.img": "core", "io/stdout": "text",
		"scratch.tar": strings.Repeat("tar", 300)}))
	to := filepath.Join(t.TempDir(), "new")
	try := func(what string, at int, changed []byte) {
		if _, err := ReadDirectory(bytes.NewReader(changed), to, testKey(), testWant()); !errors.Is(err,
			roost.Invalid) {
			t.Fatalf("%s at %d: got %v, want a bad image", what, at, err)
		}
		if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s at %d: something is left: %v", what, at, err)
		}
	}
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1 << (i % 8)
		try("flip", i, changed)
		try("cut", i, data[:i])
	}
	try("more", len(data), append(bytes.Clone(data), 0))
	try("twice", len(data), append(bytes.Clone(data), data...))
}

// TestSwapped inserts a chunk of one image into another of the same job, and exchanges
// two chunks.
func TestSwapped(t *testing.T) {
	one, _ := write(t, newStaging(t, sampleEntries()))
	two, _ := write(t, newStaging(t, sampleEntries()))
	header := len(imageMagic) + 2 + saltSize + 4 + headerSize(one) + tagSize
	chunk := 4 + chunkSize + tagSize
	mixed := append(bytes.Clone(one[:header+chunk]), two[header+chunk:]...)
	if _, err := verifyImage(bytes.NewReader(mixed), testKey(), testWant()); !errors.Is(err, roost.Invalid) {
		t.Errorf("mixed: got %v", err)
	}
	exchanged := append(bytes.Clone(one[:header]), one[header+chunk:header+2*chunk]...)
	exchanged = append(append(exchanged, one[header:header+chunk]...), one[header+2*chunk:]...)
	if _, err := verifyImage(bytes.NewReader(exchanged), testKey(), testWant()); !errors.Is(err, roost.Invalid) {
		t.Errorf("exchanged: got %v", err)
	}
}

func headerSize(data []byte) int {
	return int(binary.LittleEndian.Uint32(data[len(imageMagic)+2+saltSize:]))
}

func TestUnexpectedImage(t *testing.T) {
	data, sum := write(t, newStaging(t, map[string]string{"criu/core-1.img": "core"}))
	for what, change := range map[string]func(w *ExpectedImage, key []byte){
		"job":      func(w *ExpectedImage, _ []byte) { w.Job = "13.host" },
		"index":    func(w *ExpectedImage, _ []byte) { w.Index = 4 },
		"uid":      func(w *ExpectedImage, _ []byte) { w.UID = 0 },
		"sequence": func(w *ExpectedImage, _ []byte) { w.Sequence = 4 },
		"mac":      func(w *ExpectedImage, _ []byte) { w.MAC = bytes.Repeat([]byte{1}, 32) },
		"key":      func(_ *ExpectedImage, key []byte) { key[0]++ },
	} {
		want, key := testWant(), testKey()
		want.MAC = sum.MAC
		change(&want, key)
		if _, err := verifyImage(bytes.NewReader(data), key, want); !errors.Is(err, roost.Invalid) {
			t.Errorf("another %s: got %v, want a bad image", what, err)
		}
	}
	if _, err := verifyImage(bytes.NewReader(data), []byte("short"), testWant()); !errors.Is(err, roost.Invalid) {
		t.Errorf("short key: got %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "criu", "criu/", "criu/..", "criu/.x", "criu/a/b", "/criu/a", "../a",
		"other/a", "criu/a\x00", "criu/ä",
		"criu/" + strings.Repeat("a", MaxName+1), "scratch.tar/a"} {
		if err := checkEntryName(name); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, want a refusal", name, err)
		}
	}
	for _, name := range []string{"scratch.tar", "criu/core-1.img", "criu/tmpfs-dev-73.tar.gz.img", "io/stdout"} {
		if err := checkEntryName(name); err != nil {
			t.Error(err)
		}
	}
}

// TestHeaderMismatch checks that a writer must fulfil its header.
func TestHeaderMismatch(t *testing.T) {
	h := testHeader()
	h.Raw, h.Entries = 4, 1
	w, err := NewWriter(io.Discard, h, testKey())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("criu/a", 5, strings.NewReader("12345")); !errors.Is(err, roost.Invalid) {
		t.Errorf("too much: got %v", err)
	}
	w.Abandon()
	if w, err = NewWriter(io.Discard, h, testKey()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); !errors.Is(err, roost.Invalid) {
		t.Errorf("too little: got %v", err)
	}
}

func TestLinksStayOut(t *testing.T) {
	dir := newStaging(t, map[string]string{"criu/core-1.img": "core"})
	if err := os.Symlink("/etc/passwd", dir+"/io"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", dir+"/criu/link.img"); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDirectory(io.Discard, dir, testHeader(), testKey()); err == nil {
		t.Error("a link was packed")
	}
}

// FuzzRead reads any text. Without the key, it is refused and no file remains.
func FuzzRead(f *testing.F) {
	data, _ := write(f, newStaging(f, map[string]string{"criu/core-1.img": "core", "scratch.tar": "tar"}))
	f.Add(data)
	f.Add(data[:40])
	to := filepath.Join(f.TempDir(), "new")
	f.Fuzz(func(t *testing.T, got []byte) {
		_, err := ReadDirectory(bytes.NewReader(got), to, testKey(), testWant())
		if _, there := os.Lstat(to); (err == nil) != (there == nil) {
			t.Fatalf("read: %v, directory: %v", err, there)
		}
		if err == nil && !bytes.Equal(got, data) {
			t.Fatal("something else passed")
		}
		os.RemoveAll(to)
	})
}

// FuzzSealed reads any data that the key's owner sealed. A hostile node must not make a
// reader write outside of its directory.
func FuzzSealed(f *testing.F) {
	f.Add([]byte(`{"job":"12.host","index":3,"uid":1000,"sequence":5,"raw":10,"entries":1}`), []byte("no zstd"))
	f.Fuzz(func(t *testing.T, header, body []byte) {
		var out bytes.Buffer
		if len(header) > MaxHeader {
			return
		}
		s, err := newSealer(&out, testKey(), header)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(body)
		s.Close()
		to := filepath.Join(t.TempDir(), "new")
		if _, err := ReadDirectory(&out, to, testKey(), testWant()); err != nil {
			if _, there := os.Lstat(to); there == nil {
				t.Fatal("something is left")
			}
		}
	})
}

// memoryLikeData resembles the memory of a scientific program: half of it zeros or
// repeated, half of it noise.
func memoryLikeData(b *testing.B) string {
	b.Helper()
	data := make([]byte, 64<<20)
	rand.Read(data[:32<<20])
	return newStaging(b, map[string]string{"criu/pages-1.img": string(data)})
}

func BenchmarkWrite(b *testing.B) {
	dir := memoryLikeData(b)
	b.SetBytes(64 << 20)
	for b.Loop() {
		sum, err := WriteDirectory(io.Discard, dir, testHeader(), testKey())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(sum.Size)/(64<<20), "size/raw")
	}
}

func BenchmarkRead(b *testing.B) {
	data, _ := write(b, memoryLikeData(b))
	to := filepath.Join(b.TempDir(), "new")
	b.SetBytes(64 << 20)
	for b.Loop() {
		if _, err := ReadDirectory(bytes.NewReader(data), to, testKey(), testWant()); err != nil {
			b.Fatal(err)
		}
		os.RemoveAll(to)
	}
}

// verifyImage reads an image to its end and stores nothing. It checks that the image is
// complete, of the key and as expected.
func verifyImage(r io.Reader, key []byte, want ExpectedImage) (Header, error) {
	image, err := NewReader(r, key, want)
	if err != nil {
		return Header{}, err
	}
	defer image.Close()
	for {
		_, _, err := image.Next()
		if errors.Is(err, io.EOF) {
			return image.Header(), nil
		}
		if err != nil {
			return Header{}, err
		}
	}
}
