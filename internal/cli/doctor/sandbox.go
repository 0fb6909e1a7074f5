package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/confine"
	"github.com/roost-batch/roost/startd/containerimage"
)

// capSysResource is CAP_SYS_RESOURCE's number.
const capSysResource = 24

// checkSandbox makes the namespaces of a task's sandbox as the execute node does. It also
// checks what root may do here.
func checkSandbox() checkResult {
	const without = "tasks see each other's processes and share /tmp"
	if os.Geteuid() != 0 {
		if err := tryUserNamespaces(); err != nil {
			return checkResult{"sandbox", levelWarning, fmt.Sprintf("users get no namespaces here (%v): %s", err,
				without), "sysctl user.max_user_namespaces=10000; where AppArmor refuses them, load the sample " +
				"profile apparmor/roost; or have root run the execute node"}
		}
		return checkResult{"sandbox", levelOK,
			"tasks get processes, mounts and IPC of their own, in a user namespace", ""}
	}
	flags := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS)
	if err := tryNamespaces(flags); err != nil {
		return checkResult{"sandbox", levelWarning, fmt.Sprintf("this machine gives no namespaces (%v): %s", err,
			without), "in a container, give it CAP_SYS_ADMIN"}
	}
	if hasRight(capSysResource) {
		return checkResult{"sandbox", levelOK, "tasks get processes, mounts, IPC and host names of their own", ""}
	}
	if err := tryNamespaces(flags | syscall.CLONE_NEWUSER); err != nil {
		return checkResult{"sandbox", levelWarning,
			fmt.Sprintf("root has no CAP_SYS_RESOURCE, and there are no user namespaces (%v): some limits "+
				"cannot be set", err), "sysctl user.max_user_namespaces=10000"}
	}
	return checkResult{"sandbox", levelOK,
		"tasks get processes, mounts, IPC and host names of their own, in a user namespace, as root has " +
			"no CAP_SYS_RESOURCE here", ""}
}

// tryUserNamespaces runs a program in the namespaces that an ordinary user's tasks get.
// It has it see other mounts.
func tryUserNamespaces() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		Unshareflags: syscall.CLONE_NEWNS, // which changes a mount, too
	}
	return cmd.Run()
}

// checkImages asks whether tasks can run in container images here.
func checkImages() checkResult {
	if why := containerimage.MissingSupport(); why != "" {
		return checkResult{"images", levelWarning, why + ": no task runs in a container image here",
			"use a kernel from 5.11 on with erofs and overlay (modprobe erofs overlay)"}
	}
	return checkResult{"images", levelOK, "tasks can run in container images", ""}
}

// tryNamespaces runs a program in new namespaces.
func tryNamespaces(flags uintptr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 {
		same := []syscall.SysProcIDMap{{Size: 1 << 16}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = same,
			same, true
	}
	return cmd.Run()
}

// hasRight reports whether this process has a capability.
func hasRight(number uint) bool {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&header, &data[0]) == nil && data[number/32].Effective>>(number%32)&1 == 1
}

// examineShell looks for what roost ssh enters tasks with.
func examineShell() checkResult {
	if path, err := exec.LookPath("/usr/bin/nsenter"); err == nil {
		return checkResult{"nsenter", levelOK, path, ""}
	}
	return checkResult{"nsenter", levelWarning,
		"/usr/bin/nsenter is not there: roost ssh cannot enter tasks in sandboxes", "install util-linux"}
}

// checkpointTimeout bounds the trial of CRIU, which takes a third of a second.
const checkpointTimeout = 20 * time.Second

// examineCRIU dumps and restores a process, as a CRIU that is too old for the kernel
// fails only then.
func examineCRIU(ctx context.Context) checkResult {
	const without = "tasks cannot be checkpointed, and start anew when they have to leave a node"
	path, err := criu.Find("")
	if err != nil {
		return checkResult{"criu", levelWarning, "not installed: " + without, "scripts/criu.sh installs one that works"}
	}
	if os.Geteuid() != 0 {
		return checkResult{"criu", levelWarning, path + " is there, and only root can use it: " + without,
			"where that matters, have root run the execute node"}
	}
	dir, err := os.MkdirTemp("", "roost-doctor-")
	if err != nil {
		return checkResult{"criu", levelWarning, err.Error(), ""}
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	v := criu.Check(ctx, "/proc/self/exe", path, dir, "")
	if !v.Works {
		return checkResult{"criu", levelWarning, fmt.Sprintf("%s %s does not work on this kernel (%s): %s", path,
			v.Version, firstLine(v.Why), without), "scripts/criu.sh installs one that works"}
	}
	return checkResult{"criu", levelOK, fmt.Sprintf("%s %s dumps and restores", path, v.Version), ""}
}

// examineConfinement reports what the kernel lacks of what the web daemon and the
// accountant give up their rights with.
func examineConfinement() []checkResult {
	const check = "confinement"
	missing := confine.Missing()
	if len(missing) == 0 {
		return []checkResult{{check, levelOK, "Landlock and seccomp confine the web daemon and the accountant", ""}}
	}
	var findings []checkResult
	for _, what := range missing {
		findings = append(findings, checkResult{check, levelWarning, "the kernel lacks " + what,
			"use a kernel from 5.13 on, with landlock among lsm= of its command line"})
	}
	return findings
}
