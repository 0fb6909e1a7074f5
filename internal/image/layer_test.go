package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
)

// tarOf makes an archive. A header with a size has as many "x" as contents.
func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Format == tar.FormatUnknown {
			h.Format = tar.FormatPAX
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, strings.Repeat("x", int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 3}
}
func dir(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }
func symlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}
func hardlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

func testTree(limits Limits) *layerTree {
	return newLayerTree(limits, func(r io.Reader, size int64) (uint32, error) {
		n, err := io.Copy(io.Discard, r)
		if err == nil && n != size {
			err = io.ErrUnexpectedEOF
		}
		return 1, err
	})
}

// treeText lists a tree: directories end in a slash, links have their targets.
func treeText(dir *erofs.Node, path string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(dir.Children)) {
		switch n := dir.Children[name]; {
		case n.IsDirectory():
			lines = append(append(lines, path+name+"/"), treeText(n, path+name+"/")...)
		case n.IsSymlink():
			lines = append(lines, path+name+">"+n.Target)
		default:
			lines = append(lines, path+name)
		}
	}
	return lines
}

// TestLayers applies layers and lists the tree that they make.
func TestLayers(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers [][]tar.Header
		want   string
	}{
		{"parents that no header names", [][]tar.Header{{file("a/b/c")}}, "a/ a/b/ a/b/c"},
		{"names in all forms", [][]tar.Header{{dir("./"), file("./a"), file("/b"), file("c//d/./e")}},
			"a b c/ c/d/ c/d/e"},
		{"a whiteout", [][]tar.Header{{file("a/b"), file("a/c")}, {file("a/.wh.b")}}, "a/ a/c"},
		{"a whiteout of a directory", [][]tar.Header{{file("a/b/c"), file("d")}, {file(".wh.a")}}, "d"},
		{"a whiteout of nothing", [][]tar.Header{{file("a")}, {file("b/.wh.c")}}, "a b/"},
		{"a whiteout before its name", [][]tar.Header{{file("a")}, {file(".wh.a"), file("a"), file(".wh.a")}}, "a"},
		{"a whiteout and a new directory", [][]tar.Header{{file("a/b")}, {file("a/c"), file(".wh.a")}}, "a/ a/c"},
		{"an opaque directory", [][]tar.Header{{file("a/b"), file("a/d/e")},
			{dir("a"), file("a/.wh..wh..opq"), file("a/c")}},
			"a/ a/c"},
		{"an opaque mark that comes last", [][]tar.Header{{file("a/b"), file("a/d/e")},
			{file("a/d/f"), file("a/c"), file("a/.wh..wh..opq")}}, "a/ a/c a/d/ a/d/f"},
		{"an opaque root", [][]tar.Header{{file("a"), file("b/c")}, {file(".wh..wh..opq"), file("d")}}, "d"},
		{"marks of AUFS", [][]tar.Header{{file(".wh..wh.plnk"), file(".wh..wh.aufs"), file("a")}}, "a"},
		{"a file for a directory", [][]tar.Header{{file("a/b")}, {file("a")}}, "a"},
		{"a directory for a file", [][]tar.Header{{file("a")}, {dir("a"), file("a/b")}}, "a/ a/b"},
		{"a directory for a link", [][]tar.Header{{symlink("a", "b"), dir("b")}, {dir("a"), file("a/c")}}, "a/ a/c b/"},
		{"a directory twice", [][]tar.Header{{dir("a"), file("a/b")}, {dir("a")}}, "a/ a/b"},
		{"through a link", [][]tar.Header{{dir("usr/lib"), symlink("lib", "usr/lib")}, {file("lib/x")}},
			"lib>usr/lib usr/ usr/lib/ usr/lib/x"},
		{"through an absolute link", [][]tar.Header{{symlink("lib", "/usr/lib")}, {file("lib/x")}},
			"lib>/usr/lib usr/ usr/lib/ usr/lib/x"},
		{"through a link upwards", [][]tar.Header{{dir("a/b"), symlink("a/b/up", "../../c"), file("a/b/up/x")}},
			"a/ a/b/ a/b/up>../../c c/ c/x"},
		{"links that lead nowhere", [][]tar.Header{{symlink("a", "/nowhere"), symlink("b", "../../../etc/shadow")}},
			"a>/nowhere b>../../../etc/shadow"},
		{"a hard link across layers", [][]tar.Header{{file("a"), file("b")}, {hardlink("c", "a"),
			hardlink("./d/e", "/b"), file(".wh.a")}}, "b c d/ d/e"},
		{"a hard link to a link", [][]tar.Header{{symlink("a", "b"), hardlink("c", "a")}}, "a>b c>b"},
		{"a hard link to itself", [][]tar.Header{{file("a"), hardlink("a", "a")}}, "a"},
		{"devices", [][]tar.Header{{{Name: "dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
			{Name: "whiteout", Typeflag: tar.TypeChar}, {Name: "sda", Typeflag: tar.TypeBlock},
			{Name: "fifo", Typeflag: tar.TypeFifo}}}, "dev/"},
	} {
		tree := testTree(DefaultLimits())
		for _, layer := range c.layers {
			if err := tree.apply(context.Background(), bytes.NewReader(tarOf(t, layer...))); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if got := strings.Join(treeText(tree.root, ""), " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestHostileLayers refuses what would leave the tree, or be too much.
func TestHostileLayers(t *testing.T) {
	limits := DefaultLimits()
	limits.Entries, limits.Depth, limits.Bytes = 50, 20, 1000
	many := make([]tar.Header, 51)
	for i := range many {
		many[i] = file(fmt.Sprint(i))
		many[i].Size = 0
	}
	large := file("large")
	large.Size = 1001
	foreign := file("foreign")
	foreign.Uid = -2
	foreign.Format = tar.FormatGNU
	for name, c := range map[string]struct {
		headers []tar.Header
		want    roost.ErrorKind
	}{
		"upwards":                {[]tar.Header{file("../x")}, roost.Invalid},
		"upwards in the middle":  {[]tar.Header{file("a/../../x")}, roost.Invalid},
		"upwards, absolute":      {[]tar.Header{file("/../x")}, roost.Invalid},
		"upwards and back":       {[]tar.Header{file("a/../x")}, roost.Invalid},
		"a link upwards":         {[]tar.Header{symlink("a", "../.."), file("a/x")}, roost.Invalid},
		"a link far upwards":     {[]tar.Header{symlink("a", "/../../etc"), file("a/passwd")}, roost.Invalid},
		"a circle of links":      {[]tar.Header{symlink("a", "b"), symlink("b", "a"), file("a/x")}, roost.Invalid},
		"a link that grows":      {[]tar.Header{symlink("a", "a/a"), file("a/x")}, roost.Invalid},
		"through a file":         {[]tar.Header{file("a"), file("a/b")}, roost.Invalid},
		"a hard link upwards":    {[]tar.Header{hardlink("a", "../../etc/shadow")}, roost.Invalid},
		"a hard link to nothing": {[]tar.Header{hardlink("a", "/etc/shadow")}, roost.Invalid},
		"to a new directory":     {[]tar.Header{hardlink("a", "b/c/d")}, roost.Invalid},
		"to a directory":         {[]tar.Header{dir("a"), hardlink("a/b", "a")}, roost.Invalid},
		"to the root":            {[]tar.Header{hardlink("a", "/")}, roost.Invalid},
		"to itself":              {[]tar.Header{hardlink("a", "a")}, roost.Invalid},
		"the root is a file":     {[]tar.Header{{Name: ".", Typeflag: tar.TypeSymlink, Linkname: "/"}}, roost.Invalid},
		"an empty whiteout":      {[]tar.Header{file("a/.wh.")}, roost.Invalid},
		"a whiteout of itself":   {[]tar.Header{file("a/.wh..")}, roost.Invalid},
		"a whiteout of above":    {[]tar.Header{file("a/.wh...")}, roost.Invalid},
		"a long name":            {[]tar.Header{file(strings.Repeat("n", 256))}, roost.Invalid},
		"a long target":          {[]tar.Header{symlink("a", strings.Repeat("t", 4096))}, roost.Invalid},
		"no target":              {[]tar.Header{symlink("a", "")}, roost.Invalid},
		"a negative owner":       {[]tar.Header{foreign}, roost.Invalid},
		"too many files":         {many, roost.Exhausted},
		"too many parents":       {[]tar.Header{file(strings.Repeat("d/", 20) + "x")}, roost.Exhausted},
		"too deep by links": {[]tar.Header{dir(strings.Repeat("d/", 19)), symlink("a", strings.Repeat("d/", 19)),
			file("a/b/c/x")}, roost.Exhausted},
		"too large": {[]tar.Header{large}, roost.Exhausted},
	} {
		tree := testTree(limits)
		err := tree.apply(context.Background(), bytes.NewReader(tarOf(t, c.headers...)))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// TestAttributes holds modes, owners, times and extended attributes.
func TestAttributes(t *testing.T) {
	h := tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o106755, Uid: 7, Gid: 70000,
		ModTime: time.Unix(1600000000, 500), PAXRecords: map[string]string{
			"SCHILY.xattr.user.note": "v", "SCHILY.xattr.security.capability": "c",
			"SCHILY.xattr.trusted.overlay.redirect": "/",
			"SCHILY.xattr.user.overlay.opaque":      "y", "SCHILY.xattr.user.": "",
			"SCHILY.xattr.user.big": strings.Repeat("v", 2500)}}
	tree := testTree(DefaultLimits())
	if err := tree.apply(context.Background(), bytes.NewReader(tarOf(t, h))); err != nil {
		t.Fatal(err)
	}
	n := tree.root.Children["a"]
	if n.Mode != erofs.TypeRegular|0o6755 || n.UID != 7 || n.GID != 70000 || n.Mtime != 1600000000 || n.MtimeNs != 500 {
		t.Errorf("got %+v", n)
	}
	if len(n.Xattrs) != 1 || n.Xattrs["user.note"] != "v" || tree.dropped.xattrs.count != 5 {
		t.Errorf("got %q, and %+v left out", n.Xattrs, tree.dropped.xattrs)
	}
	if err := tree.addMountPoints(); err != nil {
		t.Fatal(err)
	}
	want := "a dev/ etc/ etc/group etc/hostname etc/hosts etc/passwd etc/resolv.conf home/ proc/ root/ run/ " +
		"run/secrets/ sys/ tmp/ var/ var/tmp/"
	if got := strings.Join(treeText(tree.root, ""), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if mode := tree.root.Children["tmp"].Mode; mode != erofs.TypeDirectory|0o1777 {
		t.Errorf("/tmp has the mode %o", mode)
	}
}

// FuzzLayer has any bytes be a layer. The tree is always one that can be written.
func FuzzLayer(f *testing.F) {
	f.Add(tarOf(f, dir("a"), file("a/b"), symlink("c", "a"), file("c/d"), hardlink("e", "c/d"), file("a/.wh.b")))
	f.Add(tarOf(f, symlink("a", "../.."), file("a/x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		limits := DefaultLimits()
		limits.Bytes, limits.Entries = 1<<20, 1000
		tree := testTree(limits)
		if tree.apply(context.Background(), bytes.NewReader(b)) != nil || tree.addMountPoints() != nil {
			return
		}
		if err := erofs.NewWriter(discardAt{}).Finish(tree.root); err != nil {
			t.Fatal(err)
		}
	})
}

type discardAt struct{}

func (discardAt) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
