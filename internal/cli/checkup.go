package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Limits below which a busy pool gets into trouble.
const (
	fewDescriptors = 4096
	littleDisk     = 1 * roost.GiB
	cgroup2Magic   = unix.CGROUP2_SUPER_MAGIC
)

// examineDirectory looks at where the pool keeps its files; nothing is known of an empty dir.
func examineDirectory(dir string) []finding {
	if dir == "" {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return []finding{{"directory", warn, fmt.Sprintf("%s: %v", dir, err), ""}}
	}
	found := finding{"directory", fine, dir, ""}
	if st.Mode&0o022 != 0 {
		found = finding{"directory", bad, fmt.Sprintf("%s: others can write there (mode %04o)", dir, st.Mode&0o7777), "chmod go-w " + dir}
	}
	findings := []finding{found}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		free := roost.Bytes(fs.Bavail) * roost.Bytes(fs.Bsize)
		disk := finding{"disk", fine, fmt.Sprintf("%v free in %s", free, dir), ""}
		if free < littleDisk {
			disk.Level, disk.Cure = warn, "make room: the queue stops when its log cannot be written"
		}
		if fs.Type == unix.NFS_SUPER_MAGIC {
			findings = append(findings, finding{"directory", warn, dir + " is on NFS, where forcing data to disk is slow and sockets may not work", "choose a local directory with --dir"})
		}
		findings = append(findings, disk)
	}
	return findings
}

// examineMachine looks at what the kernel of this machine offers to jobs.
func examineMachine(ctx context.Context) []finding {
	return []finding{examineCgroups(), examineNamespaces(), examineSandbox(), examineShell(), examineDescriptors(), examineCRIU(ctx)}
}

func examineCgroups() finding {
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err != nil {
		return finding{"cgroups", warn, "not mounted: memory and cores of jobs are not enforced", "mount -t cgroup2 none /sys/fs/cgroup"}
	}
	if fs.Type != cgroup2Magic {
		return finding{"cgroups", warn, "version 1: memory and cores of jobs are not enforced here", "boot with systemd.unified_cgroup_hierarchy=1"}
	}
	controllers, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	var missing []string
	for _, want := range []string{"cpu", "memory", "pids"} {
		if !strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " "+want+" ") {
			missing = append(missing, want)
		}
	}
	if len(missing) > 0 {
		return finding{"cgroups", warn, "version 2 without the controllers " + strings.Join(missing, ", "), "enable them in the parent's cgroup.subtree_control"}
	}
	return finding{"cgroups", fine, "version 2 with cpu, memory and pids", ""}
}

func examineNamespaces() finding {
	text, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	clone, _ := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone")
	if err != nil || strings.TrimSpace(string(text)) == "0" || strings.TrimSpace(string(clone)) == "0" {
		if os.Geteuid() == 0 {
			return finding{"namespaces", fine, "run by root, which needs no user namespaces", ""}
		}
		return finding{"namespaces", warn, "unprivileged user namespaces are switched off: tasks of a personal pool are less isolated", "sysctl user.max_user_namespaces=10000"}
	}
	return finding{"namespaces", fine, "user namespaces are there", ""}
}

func examineDescriptors() finding {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return finding{"descriptors", warn, err.Error(), ""}
	}
	if lim.Max < fewDescriptors {
		return finding{"descriptors", warn, fmt.Sprintf("at most %d open files", lim.Max), fmt.Sprintf("raise the hard limit (ulimit -Hn %d) where the pool is started", 16*fewDescriptors)}
	}
	return finding{"descriptors", fine, fmt.Sprintf("up to %d open files", lim.Max), ""}
}
