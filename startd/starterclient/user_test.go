package starterclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// nobody is the uid and gid of Debian's user nobody; group is any other group.
const nobody, group = 65534, 60123

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can run tasks as another user")
	}
}

// publicTempDir returns a directory that others can reach, unlike t.TempDir's parent.
func publicTempDir(t *testing.T, uid int, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "roost-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func asNobody(number uint32, script string) starterclient.StartCmd {
	o := shellCmd(number, script)
	o.UID, o.GID, o.Groups = nobody, nobody, []uint32{group}
	return o
}

func TestRunAsUser(t *testing.T) { runBothWays(t, testRunAsUser) }

func testRunAsUser(t *testing.T) {
	needRoot(t)
	b := spawn(t, time.Minute)
	o := asNobody(1, "grep -E '^(Uid|Gid|Groups|CapEff|CapPrm):' /proc/self/status; echo again >>/dev/stdout; kill "+
		"-0 $PPID 2>/dev/null && echo can signal; cat "+b.dir+"/journal 2>/dev/null")
	b.begin(o)
	b.end()
	want := "Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t60123 " +
		"\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nagain\n"
	if got := b.read(o.Attempt, false); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUsersFilesAreOpenedByUser(t *testing.T) { runBothWays(t, testUsersFilesAreOpenedByUser) }

func testUsersFilesAreOpenedByUser(t *testing.T) {
	needRoot(t)
	own, roots := publicTempDir(t, nobody, 0o700), publicTempDir(t, 0, 0o755)
	secret := filepath.Join(roots, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"shadow": secret, "new": filepath.Join(roots, "new")} {
		if err := os.Symlink(to, filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		change func(*starterclient.StartCmd)
		step   proto.StartStep
	}{
		{"stdout through a link", func(o *starterclient.StartCmd) { o.Stdout = "shadow" }, proto.OpenStdout},
		{"a new file through a link", func(o *starterclient.StartCmd) { o.Stderr = "new" }, proto.OpenStderr},
		{"stdin through a link", func(o *starterclient.StartCmd) { o.Stdin = "shadow" }, proto.OpenStdin},
		{"another's file", func(o *starterclient.StartCmd) { o.Stdout = secret }, proto.OpenStdout},
		{"closed cwd", func(o *starterclient.StartCmd) { o.Cwd = "/root" }, proto.EnterCwd},
		{"own file", func(o *starterclient.StartCmd) { o.Stdout = "mine" }, proto.StepNone},
	} {
		t.Run(test.name, func(t *testing.T) {
			if info, err := os.Stat("/root"); test.name == "closed cwd" && (err != nil || info.Mode()&1 != 0) {
				t.Skip("SKIPPED: /root is open to everybody")
			}
			b := spawn(t, time.Minute)
			o := asNobody(1, "echo hello")
			o.Cwd = own
			test.change(&o)
			b.Start(o)
			e := b.next()
			if _, ok := e.(starterclient.TaskStarted); ok {
				e = b.next()
			}
			exit := e.(starterclient.TaskExited).Exit
			if exit.Step != test.step || test.step != 0 &&
				(syscall.Errno(exit.Errno) != syscall.EACCES || !strings.Contains(exit.Reason, "permission denied")) {
				t.Errorf("got %+v, want step %d", exit, test.step)
			}
		})
	}
	if text, _ := os.ReadFile(secret); string(text) != "secret" {
		t.Errorf("another's file holds %q now", text)
	}
	info, err := os.Stat(filepath.Join(own, "mine"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("the user's own output: %v, %v", info, err)
	}
}

// TestRightsDoNotStay checks that the thread with the user's ids is gone. The next task
// of another user must not get them.
func TestRightsDoNotStay(t *testing.T) { runBothWays(t, testRightsDoNotStay) }

func testRightsDoNotStay(t *testing.T) {
	needRoot(t)
	b := spawn(t, time.Minute)
	for n := range uint32(20) {
		o := asNobody(n+1, "id -u")
		want := "65534\n"
		if n%2 == 1 {
			o.UID, o.GID, o.Groups, want = 0, 0, nil, "0\n"
		}
		b.begin(o)
		b.end()
		if got := b.read(o.Attempt, false); got != want {
			t.Fatalf("task %d: got %q, want %q", n, got, want)
		}
		b.DiscardAttempt(o.Attempt)
	}
}
