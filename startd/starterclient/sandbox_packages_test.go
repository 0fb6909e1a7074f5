package starterclient_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// packageTree makes the files of a package.
func packageTree(t *testing.T, text string) string {
	t.Helper()
	needRoot(t)
	dir := publicTempDir(t, 0, 0o777) // only the mount keeps tasks from writing
	if err := os.WriteFile(dir+"/name", []byte(text+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPackageSandbox checks where a task has packages, with the machine's files and in an
// image. The machine gets no directory for them.
func TestPackageSandbox(t *testing.T) {
	a, c := packageTree(t, "a"), packageTree(t, "c")
	image := imageTree(t, "mkdir opt; echo 7 >opt/size")
	place := publicTempDir(t, 0, 0o755)
	if err := os.WriteFile(place+"/beside", []byte("beside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	own := publicTempDir(t, nobody, 0o755)
	for _, test := range []struct {
		name, script, out, reason string
		image                     bool
		packages                  []proto.PackageMount
	}{
		{name: "below the root", script: "cat /roost-a/name; ls -d /etc /usr /home; test -c /dev/null && " +
			"cat /proc/1/comm >/dev/null && echo whole", out: "a\n/etc\n/home\n/usr\nwhole\n",
			packages: []proto.PackageMount{{Root: a, Inside: "/roost-a"}}},
		{name: "two", script: "cat /roost-a/name /roost-c/d/name", out: "a\nc\n", packages: []proto.PackageMount{
			{Root: a, Inside: "/roost-a"}, {Root: c, Inside: "/roost-c/d"}}},
		{name: "beside other files", script: "cd " + place + "; cat beside x/y/name", out: "beside\na\n",
			packages: []proto.PackageMount{{Root: a, Inside: place + "/x/y"}}},
		{name: "over a directory", script: "ls " + place, out: "name\n", packages: []proto.PackageMount{{Root: a,
			Inside: place}}},
		{name: "for reading", script: "echo mine 2>/dev/null >/roost-a/name || echo no; " +
			"rm -f /roost-a/name 2>/dev/null || echo no; mkdir /roost-x 2>/dev/null || echo no; cat /roost-a/name",
			out:      "no\nno\nno\na\n",
			packages: []proto.PackageMount{{Root: a, Inside: "/roost-a"}}},
		{name: "in an image", image: true, script: "cat /opt/size /opt/new/name; " +
			"echo mine 2>/dev/null >/opt/new/name || cat /opt/new/name", out: "7\na\na\n",
			packages: []proto.PackageMount{{Root: a, Inside: "/opt/new"}}},
		{name: "where users make directories", reason: "below " + own + ", where users make their own: " +
			"make it: no such file or directory", packages: []proto.PackageMount{{Root: a, Inside: own + "/x"}}},
		{name: "on a file", reason: "not a directory", packages: []proto.PackageMount{{Root: a,
			Inside: place + "/beside"}}},
		{name: "below a file", reason: "not a directory", packages: []proto.PackageMount{{Root: a,
			Inside: place + "/beside/x"}}},
		{name: "one that is not there", reason: "no such file or directory", packages: []proto.PackageMount{{
			Root: a + "/none", Inside: "/roost-a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newSandboxedStarter(t, time.Minute)
			o := asNobody(1, test.script)
			if test.image {
				o = inImage(1, image, test.script)
			}
			o.Sandbox.Packages = test.packages
			if test.reason != "" {
				b.Start(o)
				if exit := b.end(); exit.Step != proto.MakeSandbox || !strings.HasSuffix(exit.Reason, test.reason) {
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
	for _, path := range []string{"/roost-a", "/roost-c", place + "/x"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("the machine has %s", path)
		}
	}
}

// TestPackagesInTurn checks that each task of a claim has its own packages, or none.
func TestPackagesInTurn(t *testing.T) {
	a, c := packageTree(t, "a"), packageTree(t, "c")
	b := newSandboxedStarter(t, time.Minute)
	for i, root := range []string{a, c, "", a, a, ""} {
		o := asNobody(uint32(i+1), "cat /roost-a/name || echo none")
		want := "none\n"
		if root != "" {
			o.Sandbox.Packages = []proto.PackageMount{{Root: root, Inside: "/roost-a"}}
			want = map[string]string{a: "a\n", c: "c\n"}[root]
		}
		b.begin(o)
		exit := b.end()
		if got := b.read(o.Attempt, false); got != want {
			t.Errorf("task %d: got %q, want %q (%+v)", i+1, got, want, exit)
		}
		b.DiscardAttempt(o.Attempt)
	}
}
