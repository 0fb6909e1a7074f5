package starter

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// stagedMounts are the machine's mounts in the root of a claim's sandboxes. The zero
// value has none.
type stagedMounts struct {
	list     []machineMount
	hostTemp bool   // those below /tmp as well
	root     string // where they are
	realDir  string // the claim's directory without symbolic links
	info     int    // descriptor of the starter's list of mounts
	image    proto.RootImage
	packages []proto.PackageMount
}

// machineMount is a mount of the machine that sandboxes have as well.
type machineMount struct {
	at       string // mount point
	identity string // what differs when another mount is in its place
}

// stage binds the machine's mounts below the staged root in a claim's directory. It does
// so again when the kernel says that the mounts have changed (proc(5), /proc/pid/mounts)
// and others are wanted; changed is true then. The staged mounts are private: through
// slaves of the machine's mounts, whatever anybody mounts at any time would come into
// sandboxes and their checkpoints. What is mounted on an automount point (autofs(5))
// would not, as the point is not there.
//
// What the machine unmounts stays in use until the next task begins, as it does in a
// sandbox until the end of its task.
func (m *stagedMounts) stage(dir string, hostTemp bool) (changed bool, why startError) {
	if m.image.Root != "" {
		m.unstage(dir)
	}
	staged := m.root != ""
	if staged && m.hostTemp == hostTemp && !m.haveChanged() {
		return false, startError{}
	}
	if why = m.open(dir); why.step != proto.StepNone {
		return false, why
	}
	list := userDataMounts(readFrom(m.info), m.realDir)
	if m.hostTemp = hostTemp; !hostTemp { // the sandbox's would hide them
		list = slices.DeleteFunc(list, func(m machineMount) bool {
			return m.at == proto.SandboxTempDir || isBelow(m.at, proto.SandboxTempDir)
		})
	}
	if staged && slices.Equal(list, m.list) {
		return false, startError{}
	}
	if staged {
		m.detachRoot() // sandboxes that have a copy keep it
	}
	m.list, m.root = list, ""
	root := dir + stagedRoot
	bindFlags := uintptr(syscall.MS_BIND)
	if isNested() { // the machine's mounts come along, and so do the bound devices
		bindFlags |= syscall.MS_REC
	}
	for _, bind := range [...]struct {
		from, to string
		flags    uintptr
	}{{"/", root, bindFlags}, {dir + stagedDev, root + stagedDev, bindFlags},
		{"", root, syscall.MS_REC | syscall.MS_PRIVATE}} {
		if err := syscall.Mount(bind.from, bind.to, "", bind.flags, ""); err != nil {
			return true, startError{proto.MakeSandbox, errno(err), "mount on " + bind.to}
		}
		if bind.from == "/" && !isNested() {
			m.bindAll(root)
		}
	}
	if m.root = root; !isNested() {
		m.removeOthers()
	}
	return true, startError{}
}

// haveChanged reports whether mounts have changed since it was called last, ours among
// them.
func (m *stagedMounts) haveChanged() bool {
	changed := [1]unix.PollFd{{Fd: int32(m.info), Events: unix.POLLPRI}}
	n, err := unix.Poll(changed[:], 0)
	return n != 0 || err != nil
}

// open opens the list of mounts, in which paths have no symbolic links.
func (m *stagedMounts) open(dir string) startError {
	if m.info > 0 {
		return startError{}
	}
	fd, err := syscall.Open(dir, unix.O_PATH|syscall.O_CLOEXEC, 0)
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), dir}
	}
	defer syscall.Close(fd)
	var path [syscall.PathMax]byte
	n, err := syscall.Readlink("/proc/self/fd/"+itoa(fd), path[:])
	if err == nil {
		m.info, err = syscall.Open("/proc/thread-self/mountinfo", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), "the list of mounts"}
	}
	m.realDir = string(path[:n])
	return startError{}
}

// bindAll binds the mounts below a root. Where several are at the same place, the last
// one is to be seen.
func (m *stagedMounts) bindAll(root string) {
	for i, from := range m.list {
		same := func(other machineMount) bool { return other.at == from.at }
		if !slices.ContainsFunc(m.list[:i], same) {
			syscall.Mount(from.at, root+from.at, "", syscall.MS_BIND, "") // one that is gone, or hidden, is not missed
		}
	}
}

// removeOthers removes what came into the staged root before its mounts were private.
func (m *stagedMounts) removeOthers() {
	all := mountsBelow(readFrom(m.info), m.realDir+stagedRoot)
	for i := len(all) - 1; i >= 0; i-- {
		wanted := func(m machineMount) bool { return m.at == all[i] }
		if all[i] != stagedDev && !slices.ContainsFunc(m.list, wanted) {
			syscall.Unmount(m.root+all[i], syscall.MNT_DETACH)
		}
	}
}

// readFrom reads a file from its beginning.
func readFrom(fd int) []byte {
	syscall.Seek(fd, 0, 0)
	return readOpen(fd)
}

// userDataMounts lists where file systems with users' data are mounted, parents first,
// from a mountinfo file (proc(5)). The kernel's own are not among them, nor what lies
// where the box has its own, nor what is below a claim's directory.
func userDataMounts(info []byte, dir string) []machineMount {
	var list []machineMount
	for len(info) > 0 {
		text := procStatusLine(info)
		info = info[min(len(text)+1, len(info)):]
		fields := words(text)
		if len(fields) < 10 {
			continue
		}
		at, fs := unescape(fields[4]), ""
		for i := 6; i+1 < len(fields); i++ {
			if fields[i] == "-" {
				fs = fields[i+1]
				break
			}
		}
		if !isKernelFS(fs) && !isPrivateMount(at) && !isBelow(at, dir) {
			list = append(list, machineMount{at, fields[0] + " " + fields[2] + " " + fields[3]})
		}
	}
	return list
}

// mountsBelow lists what is mounted below a root, parents first, as seen from there.
func mountsBelow(info []byte, root string) (below []string) {
	for len(info) > 0 {
		text := procStatusLine(info)
		info = info[min(len(text)+1, len(info)):]
		if fields := words(text); len(fields) > 4 {
			if at := unescape(fields[4]); isBelow(at, root) {
				below = append(below, at[len(root):])
			}
		}
	}
	return below
}

// isKernelFS reports whether a file system shows the kernel and no data.
func isKernelFS(fs string) bool {
	switch fs {
	case "proc", "cgroup", "cgroup2", "devtmpfs", "devpts", "mqueue", "debugfs", "tracefs", "securityfs", "pstore",
		"bpf", "configfs", "fusectl",
		"hugetlbfs", "binfmt_misc", "autofs", "nsfs", "rpc_pipefs", "efivarfs", "selinuxfs", "":
		return true
	}
	return false
}

// isPrivateMount reports whether sandboxes do without what the machine has mounted there.
// They have their own, or it belongs to a service or to a container. That comes and goes,
// as the network namespaces of ip-netns(8) do, and a machine where a checkpoint of a task
// goes on would have to have it.
func isPrivateMount(at string) bool {
	for _, own := range [...]string{"/dev", "/proc", userServices, "/var/lib/docker", "/var/lib/containers",
		"/var/lib/containerd", "/var/lib/kubelet"} {
		if at == own || isBelow(at, own) {
			return true
		}
	}
	return at == "/" || isBelow(at, "/run") && at != "/run/lock" && !isBelow(at, "/run/media")
}

// isBelow reports whether a path is below a directory.
func isBelow(path, dir string) bool {
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}

// userServices is the directory of the sockets of users' own service managers. Through
// these sockets a task could run something outside its sandbox.
const userServices = "/run/user"

func words(text []byte) []string {
	var list []string
	start := -1
	for i := 0; i <= len(text); i++ {
		space := i == len(text) || text[i] == ' '
		if space && start >= 0 {
			list = append(list, string(text[start:i]))
			start = -1
		} else if !space && start < 0 {
			start = i
		}
	}
	return list
}

// unescape undoes the octal escapes of spaces and their like.
func unescape(text string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			out = append(out, (text[i+1]-'0')<<6|(text[i+2]-'0')<<3|(text[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, text[i])
	}
	return string(out)
}
