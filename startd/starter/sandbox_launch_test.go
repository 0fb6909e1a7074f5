package starter

import (
	"bytes"
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
36 32 0:45 / /run/lock rw - tmpfs tmpfs rw
37 32 0:41 /netns /run/netns rw shared:9 - tmpfs tmpfs rw
38 37 0:4 net:[4026532] /run/netns/blue rw - nsfs nsfs rw
39 32 0:46 / /run/media/alice/stick rw - vfat /dev/sdc rw
40 22 0:47 / /var/lib/docker/overlay2/1/merged rw - overlay overlay rw
41 22 0:48 / /claims/7/root rw - ext4 /dev/vda rw
broken
`
	want := []machineMount{{"/sys", "26 0:23 /"}, {"/sys/fs/cgroup", "27 0:24 /"}, {"/home", "30 8:1 /"},
		{"/home/with space", "31 0:40 /"}, {"/run", "32 0:41 /"}, {"/developers", "34 0:43 /"},
		{"/run/lock", "36 0:45 /"}, {"/run/media/alice/stick", "39 0:46 /"}}
	if got := userDataMounts([]byte(info), "/claims/7"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSandboxPrograms holds the programs of a sandbox against their sources, for each
// architecture that there is an assembler for.
func TestSandboxPrograms(t *testing.T) {
	for arch, machine := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		for _, name := range []string{"init", "setup"} {
			t.Run(name+"_"+arch, func(t *testing.T) {
				assembler := machine + "-linux-gnu-as"
				if runtime.GOARCH == arch {
					assembler = "as"
				}
				if _, err := exec.LookPath(assembler); err != nil {
					t.Skipf("SKIPPED: no assembler for %s: %v", arch, err)
				}
				made := filepath.Join(t.TempDir(), name)
				if out, err := exec.Command("sh", "init/make.sh", name, arch, made).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				got, err := os.ReadFile(made)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile("init/" + name + "_" + arch + ".bin")
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %v; the file has %d others: run init/make.sh, and think of the images that "+
						"have them", len(got), err, len(want))
				}
			})
		}
	}
}
