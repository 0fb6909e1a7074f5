package image

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// needTools skips a test where a program is missing, or where nothing can be mounted.
func needTools(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: images of other tools are compared as root only, because the files have owners")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: %s is missing (scripts/setup.sh tests); images are not compared with it", p)
		}
	}
}

func runTool(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	return string(out)
}

// script runs commands of a shell.
func script(t *testing.T, dir, text string) {
	t.Helper()
	runTool(t, dir, "sh", "-euc", text)
}

// firstLayer fills a directory with all that files can be. laterLayer changes it, so that
// tools write whiteouts and opaque directories.
const (
	firstLayer = `
mkdir -p usr/lib etc empty sticky deep/a/b/c gone/with/all opaque/old
ln -s usr/lib lib; ln -s /etc/passwd absolute; ln -s nowhere/at/all dangling
printf 'root:x:0:0::/:/bin/sh\n' >etc/passwd
head -c 70000 /dev/urandom >usr/lib/large; printf x >usr/lib/small; : >usr/lib/none
ln usr/lib/large hard1; ln usr/lib/large deep/hard2
printf a >gone/with/all/files; printf b >opaque/old/file; printf c >opaque/file; printf d >removed; printf e >replaced
cp /bin/true setuid; chmod 4755 setuid; chmod 1777 sticky; chmod 0700 deep/a
chown 12:34 usr/lib/small; chown 70000:80000 deep/a/b; chown -h 5:6 lib
python3 -c "import os; os.setxattr('usr/lib/small', 'user.note', b'value')"
touch -d '2001-02-03 04:05:06.789' usr/lib/small; touch -d 2002-03-04 empty
mkfifo pipe; mknod null c 1 3
printf u >'name with spaces'; printf v >"$(printf 'n\303\266n-ascii')"
i=0; while [ $i -lt 500 ]; do : >"empty/file-with-a-longer-name-$i"; i=$((i+1)); done
`
	laterLayer = `
rm -r gone removed; rm -r opaque; mkdir opaque; printf new >opaque/new
rm replaced; mkdir replaced; printf f >replaced/inner
printf more >>usr/lib/small; ln usr/lib/none hard3; printf g >usr/lib/added; rm hard1
`
)

// compareUnpacked compares the image that is built of a reference with what umoci unpacks
// of a layout.
func compareUnpacked(t *testing.T, reference, layout string) {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "bundle")
	runTool(t, "/", "umoci", "unpack", "--image", layout, bundle)
	compareMounted(t, reference, describeTree(t, filepath.Join(bundle, "rootfs")))
}

// compareMounted mounts the image that is built of a reference, and compares its files
// with descriptions. Devices and pipes are left out, and mount points added.
func compareMounted(t *testing.T, reference string, want map[string]string) {
	t.Helper()
	path, result, err := buildImage(t, testBuilder(t), reference)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "mount")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "erofs", "-o", "ro", path, dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: EROFS cannot be mounted here: %v: %s; images are not compared", err, out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	got := describeTree(t, dir)
	added := strings.Fields("dev proc sys tmp run run/secrets etc var var/tmp home root etc/resolv.conf etc/hosts " +
		"etc/passwd etc/group etc/hostname")
	for name, w := range want {
		if strings.HasPrefix(w, "p") || strings.HasPrefix(w, "D") {
			if got[name] != "" {
				t.Errorf("%s: %s is a device in the image", name, got[name])
			}
		} else if got[name] != w {
			t.Errorf("%s:\n got  %s\n want %s", name, got[name], w)
		}
	}
	for name, g := range got {
		if want[name] == "" && !slices.Contains(added, name) {
			t.Errorf("%s: got %s, want nothing", name, g)
		}
	}
	if len(want) < 500 {
		t.Errorf("%d files were compared", len(want))
	}
	t.Logf("%d files, %d bytes, notes %q", result.Files, result.Size, result.Notes)
}

// describeTree describes each file below a directory in a line.
func describeTree(t *testing.T, root string) map[string]string {
	t.Helper()
	all, names := map[string]string{}, map[uint64][]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		s := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%v %d:%d", info.Mode(), s.Uid, s.Gid)
		if name != "." && name != "etc" { // mount points and names of networks may be added
			line += fmt.Sprint(" ", info.ModTime().UnixNano())
		}
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d bytes %.20x", len(data), data)
			if s.Nlink > 1 {
				names[s.Ino] = append(names[s.Ino], name)
			}
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " > " + target
		}
		all[name] = line + userXattrs(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range names {
		for _, name := range list {
			all[name] += fmt.Sprintf(" linked as %q", list)
		}
	}
	return all
}

// userXattrs describes the extended attributes of users.
func userXattrs(path string) (text string) {
	buffer := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buffer)
	if err != nil {
		return ""
	}
	for name := range bytes.SplitSeq(buffer[:n], []byte{0}) {
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(path, string(name), value); err == nil && bytes.HasPrefix(name, []byte("user.")) {
			text += fmt.Sprintf(" %s=%q", name, value[:n])
		}
	}
	return text
}

// umociLayout has umoci make an image of two layers.
func umociLayout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	layout, bundle := filepath.Join(dir, "layout"), filepath.Join(dir, "bundle")
	runTool(t, dir, "umoci", "init", "--layout", layout)
	runTool(t, dir, "umoci", "new", "--image", layout+":test")
	for _, text := range []string{firstLayer, laterLayer} {
		runTool(t, dir, "umoci", "unpack", "--image", layout+":test", bundle)
		script(t, filepath.Join(bundle, "rootfs"), text)
		runTool(t, dir, "umoci", "repack", "--image", layout+":test", bundle)
		if err := os.RemoveAll(bundle); err != nil {
			t.Fatal(err)
		}
	}
	return layout
}

// TestUmoci builds an image that umoci made.
func TestUmoci(t *testing.T) {
	needTools(t, "umoci")
	layout := umociLayout(t)
	compareUnpacked(t, "oci:"+layout+":test", layout+":test")
}

// TestSkopeo builds what skopeo copied of it: with zstd, as an archive, and with Docker's
// manifest.
func TestSkopeo(t *testing.T) {
	needTools(t, "umoci", "skopeo")
	layout, dir := umociLayout(t), t.TempDir()
	zstd, archive := filepath.Join(dir, "zstd"), filepath.Join(dir, "archive.tar")
	runTool(t, dir, "skopeo", "--insecure-policy", "copy", "--dest-compress", "--dest-compress-format", "zstd",
		"oci:"+layout+":test", "oci:"+zstd+":test")
	runTool(t, dir, "skopeo", "--insecure-policy", "copy", "oci:"+layout+":test", "docker-archive:"+archive+":a/b:c")
	t.Run("zstd", func(t *testing.T) { compareUnpacked(t, "oci:"+zstd+":test", layout+":test") })
	t.Run("archive", func(t *testing.T) { compareUnpacked(t, "docker-archive:"+archive, layout+":test") })
}

// TestBuildah builds an image that buildah made of two layers.
func TestBuildah(t *testing.T) {
	needTools(t, "umoci", "buildah")
	dir := t.TempDir()
	files, layout := filepath.Join(dir, "files"), filepath.Join(dir, "layout")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	buildah := []string{"buildah", "--storage-driver", "vfs", "--root", filepath.Join(dir, "root"), "--runroot",
		filepath.Join(dir, "run")}
	from := "scratch"
	for i, text := range []string{firstLayer, laterLayer} {
		name := strings.TrimSpace(runTool(t, dir, append(slices.Clone(buildah), "from", from)...))
		mount := strings.TrimSpace(runTool(t, dir, append(slices.Clone(buildah), "mount", name)...))
		script(t, mount, text)
		from = fmt.Sprint("roost-test-", i)
		runTool(t, dir, append(slices.Clone(buildah), "commit", "--format", "oci", name, from)...)
	}
	runTool(t, dir, append(slices.Clone(buildah), "push", from, "oci:"+layout+":test")...)
	compareUnpacked(t, "oci:"+layout+":test", layout+":test")
}
