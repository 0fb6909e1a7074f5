package starterclient_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/image/imagetest"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// imageTree makes a small root: a shell, some programs, what they need, and what the
// script adds to it.
func imageTree(t *testing.T, script string) string {
	t.Helper()
	needRoot(t)
	root := publicTempDir(t, 0, 0o755)
	imagetest.CopyPrograms(t, root, "/bin/sh", "/bin/cat", "/bin/ls", "/bin/mkdir", "/usr/bin/whoami")
	if out, err := exec.Command("sh", "-ec", "cd "+root+"; "+script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

func inImage(number uint32, root, script string) starterclient.StartCmd {
	o := asNobody(number, script)
	o.Sandbox.Image.Root = root
	return o
}

// TestImageSandbox checks what a task sees in a container image, and what it may change
// there.
func TestImageSandbox(t *testing.T) {
	root := imageTree(t, "mkdir -p etc opt/model; echo 7 >opt/model/size; echo other:x:1:1::/:/bin/sh >etc/passwd")
	temp, home := publicTempDir(t, nobody, 0o700), publicTempDir(t, nobody, 0o700)
	locked := publicTempDir(t, 0, 0o755)
	if err := os.MkdirAll(locked+"/closed/open", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(locked+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", home+"/out"); err != nil {
		t.Fatal(err)
	}
	image := proto.RootImage{Root: root, Mounts: []proto.ImageMount{{Base: home, Inside: "/home/ann"}}}
	for _, test := range []struct {
		name, script, out, reason string
		change                    func(i *proto.RootImage)
	}{
		{name: "its files and no others", script: "cat /opt/model/size; ls /", out: "7\nbin\ndev\netc\nhome\nlib\n" +
			"lib64\nopt\nproc\nrun\nsys\ntmp\nusr\n"},
		{name: "its own processes", script: "set -- /proc/[0-9]*; echo $#", out: "2\n"},
		{name: "devices", script: "echo $(ls /dev)", out: "fd full init mqueue null ptmx pts random roost shm stderr " +
			"stdin stdout tty urandom zero\n"},
		{name: "files for a while", script: "echo mine >/tmp/file; ls /tmp", out: "file\n"},
		{name: "home", script: "echo mine >/home/ann/file; ls /home/ann", out: "file\nout\n"},
		{name: "it is not changed", script: "mkdir /x; echo 8 >/opt/model/size; cat /opt/model/size", out: "7\n"},
		{name: "nothing open", script: "echo $(ls /proc/self/fd)", out: "0 1 2 3\n"},
		{name: "an account", script: "whoami", out: "ann\n", change: func(i *proto.RootImage) {
			i.Files = []proto.ImageFile{{Path: "/etc/passwd", Text: "ann:x:65534:65534::/home/ann:/bin/sh\n"}}
		}},
		{name: "the image's accounts too", script: "cat /etc/passwd", out: "ann:x:65534:65534::/:/bin/sh\n" +
			"other:x:1:1::/:/bin/sh\n", change: func(i *proto.RootImage) {
			i.Files = []proto.ImageFile{{Path: "/etc/passwd", Text: "ann:x:65534:65534::/:/bin/sh\n"}}
		}},
		{name: "a file of the machine's", script: "cat /etc/new/passwd", out: "x\n", change: func(i *proto.RootImage) {
			i.Files = []proto.ImageFile{{Path: "/etc/new/passwd", Text: "x\n", Replace: true}}
		}},
		{name: "for reading", script: "echo mine >/in/file; ls /in", out: "file\nout\n",
			change: func(i *proto.RootImage) {
				i.Mounts = []proto.ImageMount{{Base: home, Inside: "/in", ReadOnly: true}}
			}},
		{name: "a directory that its user cannot reach", reason: "/closed/open: permission denied",
			change: func(i *proto.RootImage) {
				i.Mounts = []proto.ImageMount{{Base: locked, Path: "closed/open", Inside: "/in"}}
			}},
		{name: "a link out of a directory", reason: "/out: invalid cross-device link",
			change: func(i *proto.RootImage) {
				i.Mounts = []proto.ImageMount{{Base: home, Path: "out", Inside: "/in"}}
			}},
		{name: "no such directory", reason: "/none: no such file or directory", change: func(i *proto.RootImage) {
			i.Mounts = []proto.ImageMount{{Base: home, Path: "none", Inside: "/in"}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newSandboxedStarter(t, time.Minute)
			o := inImage(1, root, test.script)
			o.Sandbox.TempDir, o.Sandbox.Image = temp, image
			if test.change != nil {
				test.change(&o.Sandbox.Image)
			}
			if test.reason != "" {
				b.Start(o)
				if exit := b.end(); exit.Step != proto.MountDir || !strings.HasSuffix(exit.Reason, test.reason) ||
					exit.Cause != proto.LaunchFailed {
					t.Errorf("got %+v", exit)
				}
				return
			}
			b.begin(o)
			exit := b.end()
			if got := b.read(o.Attempt, false); got != test.out {
				t.Errorf("got %q, want %q (%+v, stderr %q)", got, test.out, exit, b.read(o.Attempt, true))
			}
		})
	}
}

// TestImageLinks checks that nothing is made outside of an image whose links lead out.
func TestImageLinks(t *testing.T) {
	outside := publicTempDir(t, 0, 0o777)
	up := strings.Repeat("../", 12)
	root := imageTree(t, "ln -s "+outside+" etc; ln -s "+up+outside[1:]+" home; ln -s "+outside+"/passwd run; "+
		"mkdir sys; ln -s "+outside+" sys/x")
	b := newSandboxedStarter(t, time.Minute)
	o := inImage(1, root, "true")
	o.Sandbox.Image.Files = []proto.ImageFile{{Path: "/etc/passwd", Text: "x\n"}}
	o.Sandbox.Image.Mounts = []proto.ImageMount{{Base: outside, Inside: "/home/ann"}}
	b.Start(o)
	if exit := b.end(); exit.Step != proto.MakeSandbox && exit.Code != 0 {
		t.Errorf("got %+v", exit)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("%v, %v were made outside", left, err)
	}
}

// TestImagesInTurn checks that each task of a claim has its own root: images, the
// machine's, and images again.
func TestImagesInTurn(t *testing.T) {
	a, c := imageTree(t, "echo a >name"), imageTree(t, "echo c >name")
	b := newSandboxedStarter(t, time.Minute)
	// Of an image that is mounted later, a starter's own namespace knows nothing.
	early := newSandboxedStarter(t, time.Minute)
	first := asNobody(1, "true")
	early.begin(first)
	early.end()
	early.DiscardAttempt(first.Attempt)
	later := publicTempDir(t, 0, 0o755)
	if err := unix.Mount(c, later, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(later, unix.MNT_DETACH) })
	o := inImage(2, later, "cat /name")
	o.Sandbox.Image.Namespace = fmt.Sprintf("/proc/%d/ns/mnt", os.Getpid())
	early.begin(o)
	early.end()
	if got := early.read(o.Attempt, false); got != "c\n" {
		t.Errorf("an image that was mounted later: got %q: %s", got, early.read(o.Attempt, true))
	}
	for n, test := range []struct{ root, want string }{{a, "a\n"}, {a, "a\n"}, {c, "c\n"}, {"", "none\n"}, {a, "a\n"}} {
		o := inImage(uint32(n+1), test.root, "cat /name 2>/dev/null || echo none")
		b.begin(o)
		b.end()
		if got := b.read(o.Attempt, false); got != test.want {
			t.Errorf("task %d: got %q, want %q", n, got, test.want)
		}
		b.DiscardAttempt(o.Attempt)
	}
}

// TestWritableImage checks that a task changes its own copy of an image. The claim's next
// task goes on with the copy.
func TestWritableImage(t *testing.T) {
	root := imageTree(t, "mkdir -m 777 data; echo old >data/file; chmod 666 data/file")
	changes := publicTempDir(t, 0, 0o755)
	b := newSandboxedStarter(t, time.Minute)
	for n, want := range []string{"old\n", "new\n"} {
		o := inImage(uint32(n+1), root, "cat /data/file; echo new >/data/file; echo x >/data/other")
		o.Sandbox.Image.Writable = changes
		b.begin(o)
		b.end()
		if got := b.read(o.Attempt, false); got != want {
			t.Errorf("task %d: got %q, want %q: %s", n, got, want, b.read(o.Attempt, true))
		}
		b.DiscardAttempt(o.Attempt)
	}
	if text, err := os.ReadFile(root + "/data/file"); err != nil || string(text) != "old\n" {
		t.Errorf("the image itself: %q, %v", text, err)
	}
	if text, err := os.ReadFile(changes + "/changes/data/file"); err != nil || string(text) != "new\n" {
		t.Errorf("the copy: %q, %v", text, err)
	}
}
