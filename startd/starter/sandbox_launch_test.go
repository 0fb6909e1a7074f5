package starter

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

func TestDataMounts(t *testing.T) {
	info := `22 1 253:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:6 / /dev rw - devtmpfs devtmpfs rw
25 24 0:22 / /dev/shm rw shared:3 - tmpfs tmpfs rw
26 22 0:23 / /sys rw - sysfs sysfs rw
27 26 0:24 / /sys/fs/cgroup rw - tmpfs tmpfs rw
28 27 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
30 22 8:1 / /home rw,nosuid shared:5 master:2 - xfs /dev/sda1 rw
31 30 0:40 / /home/with\040space rw - nfs4 server:/x rw
32 22 0:41 / /run rw - tmpfs tmpfs rw
35 32 0:44 / /run/user/1000 rw - tmpfs tmpfs rw
33 22 0:42 / /home2 rw - autofs auto rw
34 22 0:43 / /developers rw - ext4 /dev/sdb rw
broken
`
	want := []string{"/sys", "/sys/fs/cgroup", "/home", "/home/with space", "/run", "/developers"}
	if got := userDataMounts([]byte(info)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInitCode checks that the embedded program matches its source.
func TestInitCode(t *testing.T) {
	if _, err := exec.LookPath("as"); err != nil || runtime.GOARCH != "amd64" {
		t.Skip("no assembler for it here")
	}
	made := filepath.Join(t.TempDir(), "init")
	if out, err := exec.Command("sh", "init/make.sh", made).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(made)
	if err != nil || string(got) != initCode {
		t.Errorf("%d bytes, %v; kept are %d others: run init/make.sh, and think of the images that hold them", len(got),
			err, len(initCode))
	}
}
