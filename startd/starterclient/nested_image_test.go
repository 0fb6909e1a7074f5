package starterclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/image/imagetest"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// TestNestedImage checks what tasks see in a container image that an ordinary user's
// startd has unpacked. It runs itself again as that user.
func TestNestedImage(t *testing.T) {
	if os.Getenv(nestedVariable) == "" {
		runAsNobody(t)
		return
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	root, home, changes := filepath.Join(dir, "root"), filepath.Join(dir, "home"), filepath.Join(dir, "changes")
	for _, path := range []string{"etc", "opt/model", "locked"} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"etc/passwd": "other:x:1:1::/:/bin/sh\n", "opt/model/size": "7\n"} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	imagetest.CopyPrograms(t, root, "/bin/sh", "/bin/cat", "/bin/ls", "/bin/mkdir", "/bin/rm", "/usr/bin/id",
		"/usr/bin/unshare", "/bin/umount")
	for _, path := range []string{home, changes, changes + "/changes", changes + "/work"} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "locked"), 0o555); err != nil {
		t.Fatal(err)
	}
	image := proto.RootImage{Root: root, Mounts: []proto.ImageMount{{Base: home, Inside: "/home/ann"}},
		Files: []proto.ImageFile{{Path: "/etc/passwd", Text: "ann:x:65534:65534::/home/ann:/bin/sh\n"},
			{Path: "/locked/file", Text: "x\n", Replace: true}}}
	for _, test := range []struct {
		name, script, out string
		writable          bool
	}{
		{name: "its files and no others", script: "cat /opt/model/size /locked/file; echo $(ls /)",
			out: "7\nx\nbin dev etc home lib lib64 locked opt proc run sys tmp usr\n"},
		{name: "accounts", script: "id -un; cat /etc/passwd", out: "ann\nann:x:65534:65534::/home/ann:/bin/sh\n" +
			"other:x:1:1::/:/bin/sh\n"},
		{name: "its own processes", script: "set -- /proc/[0-9]*; echo $#", out: "2\n"},
		{name: "devices", script: "echo x >/dev/null && echo $(ls /dev) && ls /sys/kernel >/dev/null && " +
			"echo y >/dev/shm/x && cat /dev/shm/x",
			out: "fd full init mqueue null ptmx pts random roost shm stderr stdin stdout tty urandom zero\ny\n"},
		{name: "home", script: "echo mine >/home/ann/file; ls /home/ann; echo t >/tmp/t; ls /tmp", out: "file\nt\n"},
		{name: "it is not changed", script: "mkdir /x; echo 8 >/opt/model/size; rm -r /opt/model; cat /opt/model/size",
			out: "7\n"},
		{name: "changes", script: "mkdir /x; echo 8 >/opt/model/size; rm -r /usr/bin && mkdir /usr/bin; ls /usr/bin; " +
			"cat /opt/model/size; ls -d /x", out: "8\n/x\n", writable: true},
		{name: "no way back", script: "unshare -Urm sh -c 'umount -l /proc; umount -l /dev; umount -l /' " +
			"2>/dev/null; set -- /proc/[0-9]*; test $# -lt 5 && echo $(ls /opt)", out: "model\n"},
		{name: "no rights", script: "while read -r k v; do case $k in Cap[IPEA]*) echo $v ;; esac; done " +
			"</proc/self/status", out: strings.Repeat("0000000000000000\n", 4)},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := spawnNested(t)
			o := shellCmd(1, test.script)
			o.Sandbox.TempDir, o.Sandbox.Image = os.Getenv(nestedVariable)+"/tmp", image
			o.Cwd = "/"
			if test.writable {
				o.Sandbox.Image.Writable = changes
			}
			b.begin(o)
			exit := b.end()
			if got := b.read(o.Attempt, false); got != test.out {
				t.Errorf("got %q, want %q (%+v, stderr %q)", got, test.out, exit, b.read(o.Attempt, true))
			}
		})
	}
	if text, err := os.ReadFile(filepath.Join(root, "opt/model/size")); err != nil || string(text) != "7\n" {
		t.Errorf("the image was changed: %q, %v", text, err)
	}
}
