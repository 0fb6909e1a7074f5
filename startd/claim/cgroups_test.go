package claim

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
)

func TestLimitsOfClaim(t *testing.T) {
	file := File{Resources: roost.Resources{CPU: 2500, Memory: roost.GiB}}
	own := &config.StartdSettings{Limits: config.LimitSettings{Processes: 10}}
	got := limitsOf(file, own)
	if got.Weight != 50 || got.Quota != 0 || got.Memory != roost.GiB || got.Pids != 10 {
		t.Errorf("got %+v", got)
	}
	own.Limits.CPU = true
	if got = limitsOf(file, own); got.Quota != 2500 {
		t.Errorf("with a hard limit: got %+v", got)
	}
	own.Limits.CPU, file.About.NoCPUSlack, file.Slack = false, true, 512*roost.MiB
	if got = limitsOf(file, own); got.Quota != 2500 || got.Memory != 3*roost.GiB/2 ||
		got.SoftMemory != roost.GiB {
		t.Errorf("without slack of CPU time, and with that of memory: got %+v", got)
	}
	reclaimed := File{Placed: &gpu.SavedPlacement{Reclaimed: true}, Resources: roost.Resources{CPU: 4000}}
	if got := limitsOf(reclaimed, &config.StartdSettings{}).Weight; got != 4*reclaimedWeight {
		t.Errorf("4 cores in reclaimed room weigh %d", got)
	}
	if light, heavy := weightOf(100, batchWeight), weightOf(1000, streamWeight); light != 2 || heavy != 1000 {
		t.Errorf("weights %d and %d", light, heavy)
	}
}

// TestOthersCardIsClosed checks that the kernel denies a task the device files of GPUs of
// others. The task ignores its environment and opens the file itself. No driver has the
// numbers of these files, so a missing driver means that the access was allowed.
func TestOthersCardIsClosed(t *testing.T) {
	own := &config.StartdSettings{Name: "gputest", Dir: t.TempDir(),
		Limits: config.LimitSettings{Enforce: config.EnforceAuto}}
	log := slog.New(slog.DiscardHandler)
	g, err := OpenCgroups(own, log)
	if err != nil {
		t.Fatal(err)
	}
	if !g.Enforcement().Devices {
		t.Skip("SKIP: this machine cannot keep devices from tasks: no devices controller, or no right to it")
	}
	t.Cleanup(g.Close)
	dir, nodes := t.TempDir(), map[string]cgroup.DeviceNode{}
	for i, name := range []string{"nvidia0", "nvidia1", "nvidiactl", "mem"} {
		n := cgroup.DeviceNode{Path: filepath.Join(dir, name), Major: 1, Minor: uint32(200 + i)}
		if err := unix.Mknod(n.Path, unix.S_IFCHR|0o666, int(unix.Mkdev(n.Major, n.Minor))); errors.Is(err,
			unix.EPERM) {
			t.Skip("SKIP: device files can only be made by root")
		} else if err != nil {
			t.Fatal(err)
		}
		nodes[name] = n
	}
	tests := []struct {
		name string
		open string // device files that it may open
	}{
		{"no GPU", ""},
		{"GPU 0", "nvidia0 nvidiactl"},
		{"GPU 1", "nvidia1 nvidiactl"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			own := []cgroup.DeviceNode{} // not nil: the machine has GPUs
			for name := range strings.FieldsSeq(tt.open) {
				own = append(own, nodes[name])
			}
			group, err := g.create(File{ID: uint64(i + 1)}, own)
			if err != nil {
				t.Fatal(err)
			}
			defer group.Delete()
			attack := exec.Command("/bin/sh", "-c",
				`read go; for f in *; do (exec 3<"$f") 2>&1 | grep -q "not permitted" || echo "$f"; done; echo >/dev/null`)
			attack.Dir, attack.Stderr = dir, os.Stderr
			in, err := attack.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			attack.Stdout = &out
			if err := attack.Start(); err != nil {
				t.Fatal(err)
			}
			err = group.Add(attack.Process.Pid)
			fmt.Fprintln(in, "go")
			if werr := attack.Wait(); err != nil || werr != nil {
				t.Fatalf("%v, %v", err, werr)
			}
			if got := strings.Join(strings.Fields(out.String()), " "); got != tt.open {
				t.Errorf("it can open %q, want %q", got, tt.open)
			}
		})
	}
}
