package starterclient_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// nestedVariable is set in a test that runs again as an ordinary user.
const nestedVariable = "ROOST_TEST_NESTED"

// TestNestedSandbox checks what sandboxes show that an ordinary user's startd makes. It
// runs itself again as that user.
func TestNestedSandbox(t *testing.T) {
	if os.Getenv(nestedVariable) == "" {
		runAsNobody(t)
		return
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-test-") // each sandbox has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own := filepath.Join(dir, "own")
	for _, test := range []struct{ name, script, out string }{
		{"processes", "set -- /proc/[0-9]*; echo $#", "2\n"},
		{"itself", "id -u; cat /proc/self/uid_map | tr -s ' '", "65534\n 65534 65534 1\n"},
		{"temporary files", "ls -A /tmp; echo mine >/tmp/file; cat /tmp/file", "mine\n"},
		{"temporary files again", "ls /tmp", "file\n"},
		{"the user's files", "echo text >" + own + " && cat " + own, "text\n"},
		{"devices", "echo x >/dev/null; head -c 2 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; ls /dev | wc -l",
			"2\n3\n16\n"},
		{"no other devices", "ls /dev/mem /dev/vda /dev/kmsg 2>/dev/null", ""},
		{"shared memory", "ls -A /dev/shm | wc -l; echo x >/dev/shm/x && cat /dev/shm/x", "0\nx\n"},
		{"a terminal of its own", "ls /dev/pts", "ptmx\n"},
		{"no rights", "grep Cap /proc/self/status | grep -v 0000000000000000 | grep -v CapBnd; umount /tmp " +
			"2>/dev/null || echo stays", "stays\n"},
		{"no way back", "unshare -Urm sh -c 'umount -l /proc; umount -l /tmp; umount -l /dev' 2>/dev/null; " +
			"set -- /proc/[0-9]*; test $# -lt 5 && ls /tmp", "file\n"},
		{"its status", "exit 7", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := spawnNested(t)
			o := shellCmd(1, test.script)
			o.Sandbox.TempDir = os.Getenv(nestedVariable) + "/tmp"
			b.begin(o)
			exit := b.end()
			if got := b.read(o.Attempt, false); got != test.out || test.name == "its status" && exit.Code != 7 {
				t.Errorf("got %q, want %q (%+v, stderr %q)", got, test.out, exit, b.read(o.Attempt, true))
			}
		})
	}
	t.Run("one after the other", func(t *testing.T) {
		b := spawnNested(t)
		for n := range uint32(3) {
			o := shellCmd(n+1, "echo $$")
			b.begin(o)
			b.end()
			if got := b.read(o.Attempt, false); got != "2\n" {
				t.Errorf("task %d: got %q: %s", n, got, b.read(o.Attempt, true))
			}
			b.DiscardAttempt(o.Attempt)
		}
	})
	t.Run("nothing is left", func(t *testing.T) {
		b := spawnNested(t)
		o, cookie := markedCmd(t, 1, "setsid sleep 1000 & (setsid sleep 1000 &); echo ready; exec sleep 1000")
		b.begin(o)
		b.waitFor(o.Attempt, "ready")
		b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Cause: proto.Removed, Fast: true})
		b.end()
		if pids := alive(t, cookie); len(pids) != 0 {
			t.Errorf("%v are left", pids)
		}
	})
}

func spawnNested(t *testing.T) *testStarter {
	b := spawnWith(t, time.Minute, true)
	b.sandboxed = true
	return b
}

// runAsNobody runs the calling test again, as a user without rights.
func runAsNobody(t *testing.T) {
	t.Helper()
	needRoot(t)
	dir := publicTempDir(t, nobody, 0o755)
	for _, name := range []string{"test", "roost-starter"} {
		from := "/proc/self/exe"
		if name != "test" {
			from = os.Getenv("ROOST_STARTER_BINARY")
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/tmp", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+"/tmp", nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/test", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, nestedVariable + "=" + dir,
		"ROOST_STARTER_BINARY=" + dir + "/roost-starter"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "SKIPPED") {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
