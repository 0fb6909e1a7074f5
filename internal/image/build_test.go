package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	registryserver "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/confine"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// childVariable has this program be the child of a Builder.
const childVariable = "--test-image-builder"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childVariable {
		if err := RunChild(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func testBuilder(t testing.TB) Builder {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Builder{program, []string{childVariable}, t.TempDir(), DefaultLimits()}
}

// ociLayout writes an OCI layout with one image of gzip layers. A test may change the
// bytes of the blobs, by their kind.
func ociLayout(t testing.TB, layers [][]byte, change map[string]func([]byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	put := func(kind string, data []byte) string {
		t.Helper()
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:])
		if f := change[kind]; f != nil {
			data = f(data)
		}
		path := filepath.Join(dir, "blobs", "sha256", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
		return "sha256:" + name
	}
	encode := func(v any) []byte {
		t.Helper()
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	type object = map[string]any
	var descriptors []object
	var diffs []string
	for i, plain := range layers {
		sum := sha256.Sum256(plain)
		diffs = append(diffs, "sha256:"+hex.EncodeToString(sum[:]))
		if f := change["plain"]; f != nil {
			plain = f(plain)
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(plain)
		z.Close()
		descriptors = append(descriptors, object{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
			"digest": put(fmt.Sprint("layer", i), b.Bytes()), "size": b.Len()})
	}
	config := encode(object{"os": "linux", "architecture": runtime.GOARCH, "rootfs": object{"type": "layers",
		"diff_ids": diffs}, "config": object{"Env": []string{"PATH=/bin"}, "Entrypoint": []string{"/entry"},
		"Cmd": []string{"cmd"}, "WorkingDir": "/work", "User": "ada"}})
	manifest := encode(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": object{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": put("config", config),
			"size": len(config)}, "layers": descriptors})
	index := encode(object{"schemaVersion": 2, "manifests": []object{{
		"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": put("manifest", manifest),
		"size": len(manifest), "annotations": object{"org.opencontainers.image.ref.name": "latest"}}}})
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "index.json"), index, 0o600),
		os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// buildImage builds an image in a child.
func buildImage(t testing.TB, b Builder, text string) (path string, result Result, err error) {
	t.Helper()
	r, err := imageref.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	result, err = b.Build(context.Background(), r, f)
	return f.Name(), result, err
}

func fileSum(t testing.TB, path string) [32]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// TestBuild builds one image of a layout twice, and once of a registry, and compares.
func TestBuild(t *testing.T) {
	dir := ociLayout(t, [][]byte{tarOf(t, file("a"), dir("b"), tar.Header{Name: "dev/x", Typeflag: tar.TypeChar}),
		tarOf(t, file(".wh.a"), file("B"))}, nil)
	b := testBuilder(t)
	one, result, err := buildImage(t, b, "oci:"+dir+":latest")
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := buildImage(t, b, "oci:"+dir)
	if err != nil {
		t.Fatal(err)
	}
	if fileSum(t, one) != fileSum(t, two) {
		t.Error("two builds differ")
	}
	c := result.Config
	if fmt.Sprint(c) != "{[PATH=/bin] [/entry] [cmd] /work ada}" || !strings.HasPrefix(result.Source, "sha256:") {
		t.Errorf("got %+v", result)
	}
	if len(result.Notes) != 2 || !strings.Contains(result.Notes[0], "dev/x") {
		t.Errorf("notes: %q", result.Notes)
	}
	server := httptest.NewServer(registryserver.New(registryserver.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := selectImage(index, "latest", 0)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host + "/test/image:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, m); err != nil {
		t.Fatal(err)
	}
	three, fetched, err := buildImage(t, b, "docker://"+host+"/test/image:v1")
	if err != nil {
		t.Fatal(err)
	}
	if fileSum(t, one) != fileSum(t, three) || fetched.Source != result.Source {
		t.Errorf("of the registry: got %+v, want %+v", fetched, result)
	}
	if _, _, err := buildImage(t, b, "docker://"+host+"/test/image:v2"); !errors.Is(err, roost.NotFound) {
		t.Errorf("another tag: got %v", err)
	}
	if list, err := os.ReadDir(b.TempDir); err != nil || len(list) != 0 {
		t.Errorf("left over: %v, %v", list, err)
	}
}

// TestHostileImages refuses images that are not what their digests say, bombs, and
// images of other machines.
func TestHostileImages(t *testing.T) {
	good := [][]byte{tarOf(t, file("a"))}
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[len(b)/2] ^= 1
		return b
	}
	zeros := tarOf(t, tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1 << 20})
	b := testBuilder(t)
	small := b
	small.Limits.RatioFrom, small.Limits.Ratio = 1000, 20
	few := b
	few.Limits.Layers = 1
	for _, c := range []struct {
		name    string
		builder Builder
		layers  [][]byte
		change  map[string]func([]byte) []byte
		tag     string
		want    roost.ErrorKind
		words   string
	}{
		{"another configuration", b, good, map[string]func([]byte) []byte{"config": func(b []byte) []byte {
			return bytes.Replace(b, []byte("/entry"), []byte("/Entry"), 1)
		}}, "", roost.Invalid, "the configuration"},
		{"another manifest", b, good, map[string]func([]byte) []byte{"manifest": func(b []byte) []byte {
			return append(b, ' ')
		}}, "", roost.Invalid, "the manifest"},
		{"a damaged layer", b, good, map[string]func([]byte) []byte{"layer0": flip}, "", 0, "layer 1 of 1"},
		{"a longer layer", b, good, map[string]func([]byte) []byte{"layer0": func(b []byte) []byte {
			return append(slices.Clone(b), b...)
		}}, "", roost.Invalid, "its digest"},
		{"other contents", b, good, map[string]func([]byte) []byte{"plain": func([]byte) []byte {
			return tarOf(t, file("b"))
		}}, "", roost.Invalid, "contents are not those"},
		{"a bomb", small, [][]byte{zeros}, nil, "", roost.Exhausted, "taken for an attack"},
		{"too many layers", few, [][]byte{good[0], tarOf(t, file("b"))}, nil, "", roost.Exhausted, "2 layers"},
		{"another tag", b, good, nil, ":other", roost.NotFound, `"latest"`},
		{"another machine", b, good, nil, "", roost.Invalid, "wasm"},
	} {
		dir := ociLayout(t, c.layers, c.change)
		if c.name == "another machine" {
			index := filepath.Join(dir, "index.json")
			text, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.Replace(text, []byte(`"size"`), []byte(`"platform":{"os":"linux","architecture":"wasm"},"size"`), 1)
			if err := os.WriteFile(index, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := buildImage(t, c.builder, "oci:"+dir+c.tag)
		if err == nil || c.want != 0 && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.want, c.words)
		}
	}
	if _, _, err := buildImage(t, b, "oci:/nowhere"); !errors.Is(err, roost.NoInput) {
		t.Errorf("nothing: got %v", err)
	}
}

// TestConfinedChild has a directory of a layout lead to one outside of it. The
// child may not read that.
func TestConfinedChild(t *testing.T) {
	if missing := confine.Missing(); len(missing) > 0 {
		t.Skipf("SKIPPED: the kernel lacks %q; what the builder may read is not tested", missing)
	}
	dir := ociLayout(t, [][]byte{tarOf(t, file("a"))}, nil)
	outside := filepath.Join(t.TempDir(), "secret")
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := errors.Join(os.Rename(blobs, outside), os.Symlink(outside, blobs)); err != nil {
		t.Fatal(err)
	}
	_, _, err := buildImage(t, testBuilder(t), "oci:"+dir)
	if err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("got %v, want no permission", err)
	}
}

// TestDirectory makes a package twice, of equal files in two directories.
func TestDirectory(t *testing.T) {
	var sums [2][32]byte
	for i := range sums {
		dir := t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "bin"), 0o755),
			os.WriteFile(filepath.Join(dir, "bin", "tool"), []byte("#!/bin/sh\n"), 0o755),
			os.Link(filepath.Join(dir, "bin", "tool"), filepath.Join(dir, "other")),
			os.Chmod(filepath.Join(dir, "bin", "tool"), 0o755|os.ModeSetuid),
			os.Symlink("bin/tool", filepath.Join(dir, "link"))); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // another umask changes nothing
			if err := errors.Join(os.Chmod(filepath.Join(dir, "bin", "tool"), 0o700|os.ModeSetuid),
				os.Chmod(filepath.Join(dir, "bin"), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "package"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		result, err := BuildDirectory(context.Background(), dir, f, PackageLimits(), false)
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Notes) != 1+i || !strings.Contains(result.Notes[0], "set-user-ID") {
			t.Errorf("notes: %q", result.Notes)
		}
		sums[i] = fileSum(t, f.Name())
	}
	if sums[0] != sums[1] {
		t.Error("equal directories make different packages")
	}
}

// TestDirectoryRefused makes packages of what a package may not have.
func TestDirectoryRefused(t *testing.T) {
	small := PackageLimits()
	small.Bytes = 10
	for text, tt := range map[string]struct {
		limits  Limits
		anyCase bool
		make    func(dir string) error
		want    string
	}{
		"a pipe": {PackageLimits(), false, func(dir string) error { return syscall.Mkfifo(dir+"/p", 0o644) },
			"p is a device, a pipe or a socket"},
		"a device": {PackageLimits(), false, func(dir string) error {
			return syscall.Mknod(dir+"/zero", syscall.S_IFCHR|0o666, 1<<8|5)
		}, "zero is a device"},
		"case": {PackageLimits(), false, func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/A", 0o755), os.WriteFile(dir+"/a", nil, 0o644))
		}, "/a differs from another name only in case, as 1 names do: rename them, or say --any-case"},
		"case that is wanted": {PackageLimits(), true, func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/A", 0o755), os.WriteFile(dir+"/a", nil, 0o644))
		}, ""},
		"too large": {small, false, func(dir string) error { return os.WriteFile(dir+"/a", make([]byte, 11), 0o644) },
			"the files before it have more than 10B"},
		"no directory": {PackageLimits(), false, func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o644))
		}, "it is no directory"},
	} {
		dir := filepath.Join(t.TempDir(), "dir")
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = tt.make(dir)
		}
		if errors.Is(err, syscall.EPERM) {
			t.Logf("%s: not tested: %v", text, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "package"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = BuildDirectory(context.Background(), dir, f, tt.limits, tt.anyCase)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", text, err, tt.want)
		}
	}
}
