package startd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/image/imagetest"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// newContainerStartd returns a startd that has an image with a shell, and the image.
func newContainerStartd(t *testing.T, change func(p *testStartd)) (*testStartd, store.Digest) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root mounts images")
	}
	root := t.TempDir()
	imagetest.CopyPrograms(t, root, "/bin/sh", "/bin/cat", "/bin/ls", "/bin/sleep", "/bin/mkdir", "/usr/bin/whoami",
		"/usr/bin/id")
	for path, text := range map[string]string{"name": "blue\n", "opt/model/size": "7\n",
		"etc/passwd": "other:x:9:9::/:\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var digest store.Digest
	p := newTestStartdWith(t, func(p *testStartd) {
		dir := filepath.Join(p.node.Startds[0].Dir, "containers")
		blobs, err := store.OpenDirectory(filepath.Join(dir, "blobs"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer blobs.Close()
		digest = imagetest.StoreTree(t, blobs, root)
		if change != nil {
			change(p)
		}
		t.Cleanup(func() { unmountBelow(filepath.Join(dir, "mounts")) })
	})
	return p, digest
}

func (s *fakeSchedd) inContainer(digest store.Digest, text string) *wire.Program {
	p := s.shell(text)
	p.Environment = words("HOME=/root")
	p.Container = &wire.Container{Digest: string(digest), Reference: "oci:blue",
		Environment: words("PATH=/bin:/usr/bin", "COLOR=blue", "HOME=/image")}
	p.Scratch = true
	return p
}

// TestContainer runs tasks in a container image.
func TestContainer(t *testing.T) {
	t.Parallel()
	data := newDataDir(t)
	p, digest := newContainerStartd(t, func(p *testStartd) {
		p.node.Startds[0].Containers.Mounts = []string{data}
	})
	u := p.ads.awaitAd(t, "is there", func(u *wire.AdUpdate, _ *classad.Ad) bool { return u.GetAd() != "" })
	ad, err := classad.Parse(u.GetAd())
	if err != nil {
		t.Fatal(err)
	}
	if has, _ := ad.Bool(roost.AttrHasContainer); !has || !strings.Contains(u.GetAd(), string(digest)) {
		t.Errorf("the ad: %s", u.GetAd())
	}
	s := p.connect("host1", 1)
	claim := s.claim()
	for _, test := range []struct {
		name, text, out string
		change          func(p *wire.Program)
	}{
		{name: "files", text: "cat /name /opt/model/size; ls /srv 2>/dev/null || echo none", out: "blue\n7\nnone\n"},
		{name: "environment", text: "echo $COLOR $HOME $PATH", out: "blue /root /bin:/usr/bin\n"},
		{name: "working directory", text: "echo x >file; cat /tmp/job/file; pwd", out: "x\n/tmp/job\n"},
		{name: "its own", text: "cd /opt/model; echo 8 >size; cat size", out: "7\n"},
		{name: "entry point", text: "echo $0", out: "entered\n/bin/sh\n", change: func(p *wire.Program) {
			p.Container.Entrypoint = []string{"/bin/sh", "-c", `echo entered; "$0" "$@"`}
		}},
		{name: "working directory of the image", text: "cat size", out: "7\n", change: func(p *wire.Program) {
			p.Container.Workdir, p.Scratch = "/opt/model", false
		}},
		{name: "a mount", text: "echo new >/in/file; cat /in/file", out: "new\n", change: func(p *wire.Program) {
			p.Container.Mounts = []*wire.ContainerMount{{Source: data, Target: "/in"}}
		}},
		{name: "a mount for reading", text: "echo newer >" + data + "/file; cat " + data + "/file", out: "new\n",
			change: func(p *wire.Program) {
				p.Container.Mounts = []*wire.ContainerMount{{Source: data, ReadOnly: true}}
			}},
		{name: "mounts of files", text: "cat /name /etc/settings; echo newer >/etc/settings; cat /name",
			out: "new\nnew\nnewer\n", change: func(p *wire.Program) {
				p.Container.Mounts = []*wire.ContainerMount{{Source: data + "/file", Target: "/name", ReadOnly: true},
					{Source: data + "/file", Target: "/etc/settings"}}
			}},
		{name: "writable", text: "cat /name; echo 8 >/opt/model/size; mkdir /x; cat /opt/model/size; ls -d /x",
			out: "blue\n8\n/x\n", change: func(p *wire.Program) { p.Container.Writable = true }},
		{name: "what was written is gone", text: "cat /opt/model/size", out: "7\n"},
		{name: "the machine again", text: "cat /name 2>/dev/null || echo none", out: "none\n",
			change: func(p *wire.Program) { p.Container, p.Environment = nil, words("PATH=/bin:/usr/bin") }},
	} {
		program := s.inContainer(digest, test.text)
		if test.change != nil {
			test.change(program)
		}
		x := s.run(claim, program)
		if got := string(x.GetStdout()); got != test.out {
			t.Errorf("%s: got %q, want %q: %v", test.name, got, test.out, exitText(x))
		}
	}
}

// TestContainerRefused: what the machine does not allow, or does not have, is a sentence
// with the cure.
func TestContainerRefused(t *testing.T) {
	t.Parallel()
	p, digest := newContainerStartd(t, nil)
	s := p.connect("host1", 1)
	claim := s.claim()
	for _, test := range []struct {
		name, want string
		change     func(p *wire.Program)
	}{
		{"a directory that is not allowed", "n1 does not let containers have /srv: its owner allows it with mounts",
			func(p *wire.Program) {
				p.Container.Mounts = []*wire.ContainerMount{{Source: "/srv", Target: "/in"}}
			}},
		{"a working directory that is not allowed", "the working directory: the job cannot run here: n1 does not let",
			func(p *wire.Program) { p.Scratch, p.Cwd = false, "/srv" }},
		{"a target of the container's own", "nothing can be mounted on /proc/1", func(p *wire.Program) {
			p.Container.Mounts = []*wire.ContainerMount{{Source: "/srv", Target: "/proc/1"}}
		}},
		{"an image that nobody has", "host1 names no checkpoint server", func(p *wire.Program) {
			p.Container.Digest = "sha256:" + strings.Repeat("0", 64)
		}},
		{"a target below its own /tmp", "nothing can be mounted on /tmp/in", func(p *wire.Program) {
			p.Container.Mounts = []*wire.ContainerMount{{Source: "/srv", Target: "/tmp/in"}}
		}},
		{"no digest", "sha256", func(p *wire.Program) { p.Container.Digest = "blue" }},
		{"a program that it has not", "/bin/nano: no such file", func(p *wire.Program) { p.Executable = "/bin/nano" }},
	} {
		program := s.inContainer(digest, "true")
		test.change(program)
		x := s.run(claim, program)
		st := x.GetStatus()
		if st.GetCause() != wire.Cause_CAUSE_LAUNCH || !strings.Contains(st.GetReason(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, st, test.want)
		}
	}
}

// unmountBelow unmounts what a startd that was killed has left mounted.
func unmountBelow(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		unix.Unmount(filepath.Join(dir, e.Name()), unix.MNT_DETACH)
	}
}

// newDataDir makes a directory outside of /tmp, of which each container has its own.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "roost-test-data-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
