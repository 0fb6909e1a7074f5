package startd

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/wire"
)

// newSmallDiskStartd returns a startd on a small file system of its own. Without asking,
// its tasks may have 8 MiB of disk, 2 MiB of captured output, and 500 files.
func newSmallDiskStartd(t *testing.T) *testStartd {
	return newTestStartdWith(t, func(p *testStartd) {
		own := &p.node.Startds[0]
		own.Dir = damage.SmallDisk(t, "", 64<<20, 0o755)
		own.Resources.Disk = 0
		own.Limits = config.LimitSettings{Enforce: config.EnforceAuto, Sandbox: config.EnforceAuto,
			TaskDisk: 8 * roost.MiB, TaskFiles: 500, TaskOutput: 2 * roost.MiB}
	})
}

// TestTaskThatAsksForNoDisk checks that every task has limits of disk, files and captured
// output. They apply whatever the task asked for, and its exit names the one that it
// exceeded. The disk is measured at once when it fills.
func TestTaskThatAsksForNoDisk(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"captured output", "yes | head -c 10G; exec sleep 1000",
			"it wrote too much output: the limit of what is captured of a standard stream is 2MiB here, and it wrote "},
		{"captured output, and gone", "yes | head -c 5M",
			"it wrote too much output: the limit of what is captured of a standard stream is 2MiB here, and " +
				"it wrote 5MiB"},
		{"its directory", "head -c 50M /dev/zero >big; exec sleep 1000",
			"it used more disk than a task may here that asks for none: the limit is 8MiB, and its directories hold "},
		{"temporary files", "head -c 50M /dev/zero >$TMPDIR/big; exec sleep 1000",
			"it used more disk than a task may here that asks for none: the limit is 8MiB, and its directories hold "},
		{"a deleted file", "exec 3>big; rm big; head -c 50M /dev/zero >&3; exec sleep 1000",
			"; most of it in deleted files that it keeps open ("},
		{"empty files", "seq 1 600 | xargs touch; exec sleep 1000", "it made too many files: the limit is 500 here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && tt.name == "empty files" {
				t.Skip("SKIPPED: directories are measured every 15 seconds")
			}
			t.Parallel()
			p := newSmallDiskStartd(t)
			s := p.connect("host1", 1)
			program := s.shell(tt.text)
			program.Scratch = true
			x := s.run(s.claim(), program)
			if got := x.GetStatus(); got.GetCause() != wire.Cause_CAUSE_DISK ||
				!strings.Contains(got.GetReason(), tt.want) {
				t.Errorf("got %v, want %q", got, tt.want)
			}
			if most := int64(2 << 20); x.GetStdoutSize() > most {
				t.Errorf("%d bytes of output are to come, and %d may", x.GetStdoutSize(), most)
			}
			if next := s.run(s.claim(), s.shell("exit 3")); next.GetStatus().GetCode() != 3 {
				t.Errorf("the next task: %s", exitText(next))
			}
		})
	}
}

// TestFullDiskOrder: when the disk runs full, the task leaves that holds most beyond its
// request, and production stays. The machine gives no claims until there is room again.
func TestFullDiskOrder(t *testing.T) {
	t.Parallel()
	p := newTestStartdWith(t, func(p *testStartd) {
		own := &p.node.Startds[0]
		own.Dir = damage.SmallDisk(t, "", 64<<20, 0o755)
		own.Resources.Disk = 0
		own.Limits = config.LimitSettings{Enforce: config.EnforceAuto, Sandbox: config.EnforceAuto,
			TaskDisk: 60 * roost.MiB}
	})
	s := p.connect("host1", 1)
	prod := s.requestClaim(claimRequest("production", 64)).GetClaim()
	batch := s.requestClaim(claimRequest("batch", 64)).GetClaim()
	fill := func(claim uint64, size string) *wire.AttemptRef {
		program := s.shell("head -c " + size + " /dev/zero >big; exec sleep 1000")
		program.Scratch = true
		a := s.activate(claim, program, false)
		s.awaitStarted(a)
		return a
	}
	a := fill(prod, "35M")
	b := fill(batch, "27M")
	x := s.awaitOnlyExit(b)
	if got := x.GetStatus(); got.GetCause() != wire.Cause_CAUSE_VACATED ||
		!strings.Contains(got.GetReason(), "the disk of its machine is nearly full (") ||
		!strings.Contains(got.GetReason(), "and asked for none; ask for it with disk") {
		t.Errorf("got %v", got)
	}
	s.acknowledge(b)
	if lost := s.nextMessage("the loss of its claim").GetLost(); lost.GetClaim() != batch {
		t.Errorf("got %v", lost)
	}
	s.vacate(a, true)
	if x := s.awaitOnlyExit(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_REMOVED {
		t.Errorf("production did not stay: %s", exitText(x))
	}
}
