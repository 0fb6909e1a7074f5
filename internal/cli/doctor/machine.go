package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
)

// Limits below which a busy pool gets into trouble.
const (
	minDescriptors = 4096
	minFreeDisk    = 1 * roost.GiB
)

// examineDirectory looks at where the pool keeps its files; nothing is known of an empty
// dir.
func examineDirectory(dir string) []checkResult {
	if dir == "" {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return []checkResult{{"directory", levelWarning, fmt.Sprintf("%s: %v", dir, err), ""}}
	}
	found := checkResult{"directory", levelOK, dir, ""}
	if st.Mode&0o022 != 0 {
		found = checkResult{"directory", levelError,
			fmt.Sprintf("%s: others can write there (mode %04o)", dir, st.Mode&0o7777), "chmod go-w " + dir}
	}
	findings := []checkResult{found}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		free := roost.Bytes(fs.Bavail) * roost.Bytes(fs.Bsize)
		disk := checkResult{"disk", levelOK, fmt.Sprintf("%v free in %s", free, dir), ""}
		if free < minFreeDisk {
			disk.Level, disk.Hint = levelWarning, "make room: the queue stops when its log cannot be written"
		}
		if fs.Type == unix.NFS_SUPER_MAGIC {
			findings = append(findings, checkResult{"directory", levelWarning,
				dir + " is on NFS, where forcing data to disk is slow and sockets may not work",
				"choose a local directory with --dir"})
		}
		findings = append(findings, disk)
	}
	return findings
}

// examineMachine looks at what the kernel of this machine offers to jobs of a pool of
// this user. In another's pool it does not matter what this user may do.
func examineMachine(ctx context.Context, ours bool) []checkResult {
	if !ours {
		return []checkResult{examineShell()}
	}
	return append(append(examineCgroups(), examineNamespaces(), checkSandbox(), checkImages(), examineShell(),
		examineDescriptors(), examineCRIU(ctx)), examineConfinement()...)
}

// examineCgroups asks what a startd of this user could hold tasks to on this machine, and
// makes nothing for that.
func examineCgroups() []checkResult {
	h, err := cgroup.Open("/roost/doctor")
	if err != nil {
		return []checkResult{{"cgroups", levelWarning, err.Error(), ""}}
	}
	can := h.Enforcement()
	var findings []checkResult
	if names := can.Names(); len(names) > 0 {
		text := fmt.Sprintf("version %d: tasks are held to what they asked for: %s", can.Version,
			strings.Join(names, ", "))
		if can.Version == 0 {
			text = "no controllers: tasks are not held to what they asked for; there is " + strings.Join(names, ", ")
		}
		findings = append(findings, checkResult{"cgroups", levelOK, text, ""})
	}
	findings = append(findings, examineIO(can)...)
	for _, missing := range can.Missing {
		what, cure, _ := strings.Cut(missing, "; ")
		findings = append(findings, checkResult{"cgroups", levelWarning, what, cure})
	}
	if can.Memory && !cgroup.CanReadKernelLog() {
		findings = append(findings, checkResult{"cgroups", levelWarning,
			"the kernel's log cannot be read, so that the process that ran out of memory is not named",
			"sysctl kernel.dmesg_restrict=0, or run the startd as root"})
	}
	return findings
}

// examineIO says how far requests for disk I/O and network are enforced here.
func examineIO(can cgroup.Enforcement) []checkResult {
	network := checkResult{"network", levelOK, "requests for network are divided among tasks, and not enforced", ""}
	text := "requests for disk I/O are enforced"
	if can.Version == 1 {
		text += ", but for writes through the page cache, which only control groups of version 2 limit"
	}
	if !can.IOLimits {
		text = "requests for disk I/O are divided among tasks, and not enforced"
	}
	return []checkResult{{"disk I/O", levelOK, text, ""}, network}
}

func examineNamespaces() checkResult {
	text, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	clone, _ := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone")
	if err != nil || strings.TrimSpace(string(text)) == "0" || strings.TrimSpace(string(clone)) == "0" {
		if os.Geteuid() == 0 {
			return checkResult{"namespaces", levelOK, "run by root, which needs no user namespaces", ""}
		}
		return checkResult{"namespaces", levelWarning,
			"unprivileged user namespaces are switched off: tasks of a personal pool are less isolated",
			"sysctl user.max_user_namespaces=10000"}
	}
	return checkResult{"namespaces", levelOK, "user namespaces are there", ""}
}

func examineDescriptors() checkResult {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return checkResult{"descriptors", levelWarning, err.Error(), ""}
	}
	if lim.Max < minDescriptors {
		return checkResult{"descriptors", levelWarning, fmt.Sprintf("at most %d open files", lim.Max),
			fmt.Sprintf("raise the hard limit (ulimit -Hn %d) where the pool is started", 16*minDescriptors)}
	}
	return checkResult{"descriptors", levelOK, fmt.Sprintf("up to %d open files", lim.Max), ""}
}
