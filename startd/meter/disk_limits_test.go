package meter

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/userfiles"
)

// TestDiskLimitsOf: what the owner has set, and parts of the machine's disk where nothing
// is set.
func TestDiskLimitsOf(t *testing.T) {
	set := config.LimitSettings{TaskDisk: 3 * roost.GiB, TaskFiles: 7, TaskOutput: roost.MiB}
	if got, want := DiskLimitsOf(set, "/", 100*roost.GiB), (DiskLimits{3 * roost.GiB, 7,
		roost.MiB}); got != want {
		t.Errorf("set: got %v, want %v", got, want)
	}
	got := DiskLimitsOf(config.LimitSettings{}, "/", 100*roost.GiB)
	if got.Disk != 10*roost.GiB || got.Output != roost.GiB || got.Files < 1 || got.Files > defaultTaskFiles {
		t.Errorf("unset: got %v", got)
	}
	if got := DiskLimitsOf(config.LimitSettings{}, "/", 50*roost.MiB); got.Disk != 5*roost.MiB ||
		got.Output != 5*roost.MiB {
		t.Errorf("unset, on a small disk: got %v", got)
	}
}

func TestSentences(t *testing.T) {
	tests := []struct{ got, want string }{
		{oomReason(cgroup.OOMEvent{Kills: 1, MemoryLimit: 64 * roost.MiB, Process: "python3", PID: 42}, 63*roost.MiB),
			"it needed more memory than it asked for: the limit is 64MiB, the peak was 63MiB; the kernel killed its " +
				"process python3 (42)"},
		{oomReason(cgroup.OOMEvent{Kills: 1}, 0),
			"it needed more memory than it asked for; the kernel killed a process of it (signal 9)"},
		{diskLimitReason(3*roost.GiB, roost.GiB, true,
			[]userfiles.TransferEntry{{Name: "a", Size: 2 << 30}, {Name: "b", Size: 1 << 30}}, false),
			"it used more disk than it asked for: the limit is 1GiB, and its directories hold at least 3GiB; most " +
				"of it in a (2GiB), b (1GiB)"},
	}
	for _, c := range tests {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}
