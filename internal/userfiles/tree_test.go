package userfiles

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// growTree makes a tree below dir with everything that a scratch directory may have.
func growTree(t testing.TB, dir string) {
	t.Helper()
	writeTree(t, dir, map[string]string{"a": "text", "empty": "", "sub/deep/b": strings.Repeat("b", 100000),
		"void/": "", "locked": "l", "shut/in": "i", "odd\xff\n": "o"})
	old := time.Unix(1234567890, 123456789)
	sparse, err := os.Create(dir + "/sparse")
	for _, err := range []error{
		err, os.Symlink("/etc/passwd", dir+"/link"), os.Symlink("nowhere", dir+"/sub/dangling"),
		os.Link(dir+"/a", dir+"/sub/hard"),
		unix.Mkfifo(dir+"/fifo", 0o620), unix.Mkfifo(dir+"/sub/fifo", 0o600), os.Chtimes(dir+"/a", old, old),
		os.Chmod(dir+"/a", 0o751),
		sparse.Truncate(64 << 20), os.Chmod(dir+"/void", 0o1770), os.Chtimes(dir+"/void", old, old),
		os.Chtimes(dir+"/sub/deep", old, old),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sparse.WriteAt([]byte("middle"), 30<<20)
	sparse.Close()
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrUnix{Name: dir + "/socket"})
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(socket)
}

// describe returns a text for a tree; equal trees have equal texts.
func describe(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir || d.Type()&fs.ModeSocket != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sys := info.Sys().(*syscall.Stat_t)
		what := ""
		switch {
		case info.Mode().IsRegular():
			data, _ := os.ReadFile(path)
			what = fmt.Sprintf("%d bytes %d links %x", len(data), sys.Nlink, hashOf(data))
		case info.Mode()&fs.ModeSymlink != 0:
			what, _ = os.Readlink(path)
		}
		when := info.ModTime().UnixNano()
		if info.IsDir() && !strings.HasSuffix(path, "void") && !strings.HasSuffix(path, "deep") {
			when = 0 // packing such a file does not change its times, but the test has
		}
		fmt.Fprintf(&out, "%q %v %d:%d %d %s\n", strings.TrimPrefix(path, dir), info.Mode(), sys.Uid, sys.Gid,
			when, what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func hashOf(data []byte) (h uint64) {
	data = bytes.TrimRight(data, "\x00")
	for _, b := range data[max(0, len(data)-200000):] {
		h = h*1099511628211 + uint64(b)
	}
	return h
}

func TestPackUnpack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	growTree(t, from)
	writeTree(t, to, map[string]string{"left/over": "x", "a": "older"})
	var out bytes.Buffer
	packed, err := Pack(t.Context(), ownCredential(), "", from, 1<<20, &out)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 1<<20 {
		t.Errorf("the tar has %d bytes: holes are in it", out.Len())
	}
	unpacked, err := Unpack(t.Context(), ownCredential(), "", to, 1<<20, &out)
	if err != nil || unpacked != packed {
		t.Fatalf("got %+v, %v, want %+v", unpacked, err, packed)
	}
	if got, want := describe(t, to), describe(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	info, _ := os.Stat(to + "/sparse")
	if info.Sys().(*syscall.Stat_t).Blocks > 1000 {
		t.Error("the holes of a file are filled")
	}
}

// TestPackSome packs with a process of another user, including files without permissions
// for their owner. Only what patterns match is packed, and it is added to the existing
// contents.
func TestPackSome(t *testing.T) {
	from := t.TempDir()
	writeTree(t, from, map[string]string{"state/1": "one", "state/2": "two", "state/deep/3": "three", "other": "o",
		"a.dat": "a", "b.dat": "b", "sub/x/in": "in", "sub/y": "y"})
	for _, tt := range []struct {
		patterns []string
		want     string
		err      error
	}{
		{[]string{"state"}, "kept state/1 state/2 state/deep/3", nil},
		{[]string{"state/*", "*.dat"}, "a.dat b.dat kept state/1 state/2 state/deep/3", nil},
		{[]string{"./sub/*/in", "nothing*"}, "kept sub/x/in", nil},
		{[]string{"state/[12]"}, "kept state/1 state/2", nil},
		{[]string{"other", "absent"}, "", roost.NoInput},
		{[]string{"../other"}, "", roost.Invalid},
		{[]string{"/etc/passwd"}, "", roost.Invalid},
		{[]string{"[x"}, "", roost.Invalid},
		{[]string{"."}, "", roost.Invalid},
	} {
		var packed bytes.Buffer
		_, err := Pack(t.Context(), ownCredential(), "", from, 1<<20, &packed, tt.patterns...)
		if !errors.Is(err, tt.err) {
			t.Errorf("%q: got %v, want %v", tt.patterns, err, tt.err)
		}
		if err != nil {
			continue
		}
		to := t.TempDir()
		writeTree(t, to, map[string]string{"kept": "k", "state/1": "older", "a.dat/was": "a directory"})
		if _, err := UnpackInto(t.Context(), ownCredential(), "", to, 1<<20, &packed); err != nil {
			t.Errorf("%q: %v", tt.patterns, err)
			continue
		}
		var got []string
		filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(to, path)
			if !d.IsDir() && name != "a.dat/was" && (name != "state/1" || readText(t, path) != "older") {
				got = append(got, name)
			}
			return err
		})
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: got %s, want %s", tt.patterns, s, tt.want)
		}
	}
}

func readText(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPackOfAnotherUser(t *testing.T) {
	needRoot(t)
	cred, exe := UserCredential{UID: nobody, GID: nobody, Groups: []uint32{60123}}, copyTestBinary(t)
	from, to := userDirectory(t, cred), userDirectory(t, cred)
	growTree(t, from)
	filepath.WalkDir(from, func(path string, _ fs.DirEntry, _ error) error { return os.Lchown(path, nobody, nobody) })
	for path, mode := range map[string]fs.FileMode{"/locked": 0, "/shut": 0, "/a": 0o751, "/void": 0o1770} {
		os.Chmod(from+path, mode)
	}
	os.Chown(from+"/empty", nobody, 60123)
	var out bytes.Buffer
	packed, err := Pack(t.Context(), cred, exe, from, 1<<20, &out)
	if err != nil {
		t.Fatal(err)
	}
	tree := out.Bytes()
	unpacked, err := Unpack(t.Context(), cred, exe, to, 1<<20, bytes.NewReader(tree))
	if err != nil || unpacked != packed {
		t.Fatalf("got %+v, %v, want %+v", unpacked, err, packed)
	}
	if got, want := describe(t, to), describe(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := Unpack(t.Context(), cred, exe, to, 1<<20, bytes.NewReader(tree)); err != nil {
		t.Errorf("again, over what is there: %v", err)
	}
	os.WriteFile(from+"/theirs", []byte("x"), 0o600)
	if _, err := Pack(t.Context(), cred, exe, from, 1<<20, io.Discard); !errors.Is(err, roost.NoInput) ||
		!strings.Contains(err.Error(), "theirs") {
		t.Errorf("root's file: got %v, want a refusal that names it", err)
	}
}

// userDirectory makes a scratch directory that its user can access.
func userDirectory(t testing.TB, cred UserCredential) string {
	t.Helper()
	parent, err := os.MkdirTemp("/tmp", "roost-tree")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	os.Chmod(parent, 0o711)
	dir, err := MakeScratch(parent, "s", cred)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTreeRights tries what the user may not read or write. It uses a link to a directory
// of root, and a base replaced by one.
func TestTreeRights(t *testing.T) {
	needRoot(t)
	cred, exe := UserCredential{UID: nobody, GID: nobody}, copyTestBinary(t)
	secret, err := os.MkdirTemp("/tmp", "roost-secret")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(secret)
	writeTree(t, secret, map[string]string{"shadow": "root's"})
	dir := userDirectory(t, cred)
	os.Remove(dir)
	if err := os.Symlink(secret, dir); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Pack(t.Context(), cred, exe, dir, 1<<20, &out); !errors.Is(err, roost.NoInput) ||
		bytes.Contains(out.Bytes(), []byte("root's")) {
		t.Errorf("pack: got %v, want permission denied", err)
	}
	if _, err := Unpack(t.Context(), cred, exe, dir, 1<<20, bytes.NewReader(nil)); !errors.Is(err, roost.NoOutput) {
		t.Errorf("unpack: got %v, want permission denied", err)
	}
	if _, err := os.Stat(secret + "/shadow"); err != nil {
		t.Error(err)
	}
}

func tarOf(t testing.TB, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, h.Size))
	}
	w.Close()
	return &out
}

func TestUnpackRefuses(t *testing.T) {
	uid := os.Geteuid()
	outside := t.TempDir()
	for what, headers := range map[string][]tar.Header{
		"absolute":  {{Name: outside + "/x", Typeflag: tar.TypeReg, Uid: uid}},
		"up":        {{Name: "../x", Typeflag: tar.TypeReg, Uid: uid}},
		"up inside": {{Name: "a/../../x", Typeflag: tar.TypeReg, Uid: uid}},
		"itself":    {{Name: ".", Typeflag: tar.TypeDir, Uid: uid}},
		"device":    {{Name: "null", Typeflag: tar.TypeChar, Uid: uid, Devmajor: 1, Devminor: 3}},
		"disk":      {{Name: "sda", Typeflag: tar.TypeBlock, Uid: uid, Devmajor: 8}},
		"hard link": {{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd", Uid: uid}},
		"hard up":   {{Name: "h", Typeflag: tar.TypeLink, Linkname: "../x", Uid: uid}},
		"through": {{Name: "d", Typeflag: tar.TypeSymlink, Linkname: outside, Uid: uid},
			{Name: "d/x", Typeflag: tar.TypeReg, Uid: uid}},
		"through up": {{Name: "d", Typeflag: tar.TypeSymlink, Linkname: "..", Uid: uid},
			{Name: "d/x", Typeflag: tar.TypeReg, Uid: uid}},
		"fifo beyond": {{Name: "d", Typeflag: tar.TypeSymlink, Linkname: outside, Uid: uid},
			{Name: "d/x", Typeflag: tar.TypeFifo, Uid: uid}},
		"link beyond": {{Name: "d", Typeflag: tar.TypeSymlink, Linkname: outside, Uid: uid},
			{Name: "d/x", Typeflag: tar.TypeSymlink, Linkname: "y", Uid: uid}},
		"over a link": {{Name: "d", Typeflag: tar.TypeSymlink, Linkname: outside + "/x", Uid: uid},
			{Name: "d", Typeflag: tar.TypeReg, Uid: uid}},
		"too much": {{Name: "big", Typeflag: tar.TypeReg, Uid: uid, Size: 2000}},
		"holes": {{Name: "s", Typeflag: tar.TypeReg, Uid: uid, Size: 5,
			PAXRecords: map[string]string{sizeRecord: "3", holesRecord: "0:5"}}},
		"holes back": {{Name: "s", Typeflag: tar.TypeReg, Uid: uid, Size: 6,
			PAXRecords: map[string]string{sizeRecord: "9", holesRecord: "5:3,0:3"}}},
	} {
		_, err := Unpack(t.Context(), ownCredential(), "", t.TempDir(), 1000, tarOf(t, headers...))
		if err == nil {
			t.Errorf("%s: it was unpacked", what)
		}
		if left, _ := os.ReadDir(outside); len(left) != 0 {
			t.Fatalf("%s: %v was made outside", what, left)
		}
	}
	if uid == 0 {
		exe, cred := copyTestBinary(t), UserCredential{UID: nobody, GID: nobody}
		for what, h := range map[string]tar.Header{"root's": {Name: "x", Typeflag: tar.TypeReg, Mode: 0o4755},
			"another's": {Name: "x", Typeflag: tar.TypeReg, Uid: 1234}} {
			if _, err := Unpack(t.Context(), cred, exe, userDirectory(t, cred), 1000, tarOf(t, h)); !errors.Is(err,
				roost.Invalid) {
				t.Errorf("%s: got %v, want a refusal", what, err)
			}
		}
	}
}

// TestPackMoving packs while another process replaces files by links and directories and
// removes others. It must end, and the archive must contain nothing from outside.
func TestPackMoving(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	writeTree(t, outside, map[string]string{"secret": "SECRET", "d/secret": "SECRET"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			at := fmt.Sprintf("%s/%d", dir, i%7)
			os.RemoveAll(at)
			switch i % 5 {
			case 0:
				os.Symlink(outside, at)
			case 1:
				os.MkdirAll(at+"/d", 0o700)
				os.WriteFile(at+"/d/secret", []byte("mine"), 0o600)
			case 2:
				os.WriteFile(at, bytes.Repeat([]byte("m"), i%9000), 0o600)
			case 3:
				os.Symlink(outside+"/secret", at)
			case 4:
				unix.Mkfifo(at, 0o600)
			}
		}
	}()
	for range 300 {
		var out bytes.Buffer
		Pack(t.Context(), ownCredential(), "", dir, 1<<20, &out)
		if bytes.Contains(out.Bytes(), []byte("SECRET")) {
			t.Fatal("a file of outside was packed")
		}
	}
	stop()
	<-ended
}

func TestTreeBounds(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"a": strings.Repeat("x", 1000), "b": strings.Repeat("x", 1000)})
	if _, err := Pack(t.Context(), ownCredential(), "", dir, 1500, io.Discard); !errors.Is(err, roost.Exhausted) {
		t.Errorf("bytes: got %v, want the limit", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Pack(ctx, ownCredential(), "", dir, 1<<20, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if os.Geteuid() == 0 {
		if _, err := Pack(ctx, UserCredential{UID: nobody, GID: nobody}, copyTestBinary(t), dir, 1<<20,
			io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled process: got %v", err)
		}
	}
	deep := dir
	for range maxTreeDepth + 5 {
		deep += "/d"
		if err := os.Mkdir(deep, 0o700); err != nil {
			t.Skipf("SKIPPED: so deep a directory cannot be made: %v", err)
		}
	}
	if _, err := Pack(t.Context(), ownCredential(), "", dir, 1<<20, io.Discard); !errors.Is(err, roost.Exhausted) {
		t.Errorf("depth: got %v, want the limit", err)
	}
}
