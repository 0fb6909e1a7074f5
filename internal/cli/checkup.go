package cli

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
	fewDescriptors = 4096
	littleDisk     = 1 * roost.GiB
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

// examineMachine looks at what the kernel of this machine offers to jobs of a pool of this user. In another's pool it does not matter what this
// user may do.
func examineMachine(ctx context.Context, ours bool) []finding {
	if !ours {
		return []finding{examineShell()}
	}
	return append(examineCgroups(), examineNamespaces(), examineSandbox(), examineShell(), examineDescriptors(), examineCRIU(ctx))
}

// examineCgroups asks what a startd of this user could hold tasks to on this machine, and makes nothing for that.
func examineCgroups() []finding {
	h, err := cgroup.Open("/roost/doctor")
	if err != nil {
		return []finding{{"cgroups", warn, err.Error(), ""}}
	}
	can := h.Can()
	var findings []finding
	if names := can.Names(); len(names) > 0 {
		text := fmt.Sprintf("version %d: tasks are held to what they asked for: %s", can.Version, strings.Join(names, ", "))
		if can.Version == 0 {
			text = "no controllers: tasks are not held to what they asked for; there is " + strings.Join(names, ", ")
		}
		findings = append(findings, finding{"cgroups", fine, text, ""})
	}
	for _, missing := range can.Missing {
		what, cure, _ := strings.Cut(missing, "; ")
		findings = append(findings, finding{"cgroups", warn, what, cure})
	}
	if can.Memory && !cgroup.Log() {
		findings = append(findings, finding{"cgroups", warn, "the kernel's log cannot be read, so that the process that ran out of memory is not named", "sysctl kernel.dmesg_restrict=0, or run the startd as root"})
	}
	return findings
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
