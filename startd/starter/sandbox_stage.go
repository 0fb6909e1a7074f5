package starter

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

const (
	sandboxInitPath = "/dev/init"
	stagedRoot      = "/root" // below the claim's directory: the root of the boxes
	stagedDev       = "/dev"  // and their devices
)

// stageRoot builds the common part of all sandboxes of the claim, in the starter's own
// mount namespace. That part has the machine's files, the claim's devices, and the
// devices that every user may use. Later mounts of the machine also appear in it.
func (s *starterProcess) stageRoot(o *proto.StartCmd) startError {
	switch {
	case s.rootStaged:
		return s.replaceDevices(o.Sandbox.Devices)
	case initCode == "":
		return startError{proto.MakeSandbox, syscall.ENOSYS, "not on this kind of processor"}
	}
	syscall.Umask(0)
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount namespace"}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount on /"}
	}
	root, dev := s.dir+stagedRoot, s.dir+stagedDev
	for _, dir := range [...]string{root, dev} {
		if err := syscall.Mkdir(dir, 0o755); err != nil && err != syscall.EEXIST {
			return startError{proto.MakeSandbox, errno(err), dir}
		}
	}
	mounts := userDataMounts(readAll("/proc/thread-self/mountinfo")) // without our own
	if err := syscall.Mount("/", root, "", syscall.MS_BIND, ""); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount on " + root}
	}
	for _, at := range mounts {
		syscall.Mount(at, root+at, "", syscall.MS_BIND, "") // one that is gone meanwhile, or hidden, is not missed
	}
	if err := syscall.Mount("tmpfs", dev, "tmpfs", syscall.MS_NOSUID, "mode=755,size=1m"); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount on " + dev}
	}
	if why := populateDev(dev, o.Sandbox.Devices); why.step != proto.StepNone {
		return why
	}
	if err := syscall.Mount(dev, root+stagedDev, "", syscall.MS_BIND, ""); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount on " + root + stagedDev}
	}
	setup, why := openSetup(dev)
	if why.step != proto.StepNone {
		return why
	}
	s.rootStaged, s.devices, s.setup = true, o.Sandbox.Devices, setup
	return startError{}
}

// replaceDevices replaces the claim's devices with other devices. A claim that waits for
// its turn gets the devices that are free then.
func (s *starterProcess) replaceDevices(devices []proto.DeviceNode) startError {
	if slices.Equal(devices, s.devices) {
		return startError{}
	}
	syscall.Umask(0)
	dev := s.dir + stagedDev
	for _, d := range s.devices {
		if err := syscall.Unlink(dev + d.Path[len("/dev"):]); err != nil && err != syscall.ENOENT {
			return startError{proto.MakeSandbox, errno(err), d.Path}
		}
	}
	s.devices = devices
	return makeNodes(dev, devices)
}

// populateDev makes the devices, the places where the box mounts something, and the
// program of its first process.
func populateDev(dev string, own []proto.DeviceNode) startError {
	if why := makeNodes(dev, append([]proto.DeviceNode{
		{Path: "/dev/null", Major: 1, Minor: 3}, {Path: "/dev/zero", Major: 1, Minor: 5},
		{Path: "/dev/full", Major: 1, Minor: 7},
		{Path: "/dev/random", Major: 1, Minor: 8}, {Path: "/dev/urandom", Major: 1, Minor: 9},
		{Path: "/dev/tty", Major: 5, Minor: 0},
	}, own...)); why.step != proto.StepNone {
		return why
	}
	for _, dir := range [...]string{"/shm", "/mqueue", "/pts", proto.SandboxIODir[len("/dev"):]} {
		if err := syscall.Mkdir(dev+dir, 0o755); err != nil {
			return startError{proto.MakeSandbox, errno(err), "/dev" + dir}
		}
	}
	for _, link := range [...][2]string{
		{"/proc/self/fd", "/fd"}, {"/proc/self/fd/0", "/stdin"}, {"/proc/self/fd/1", "/stdout"},
		{"/proc/self/fd/2", "/stderr"}, {"pts/ptmx", "/ptmx"},
	} {
		if err := syscall.Symlink(link[0], dev+link[1]); err != nil {
			return startError{proto.MakeSandbox, errno(err), "/dev" + link[1]}
		}
	}
	if err := makeProgram(dev+sandboxInitPath[len("/dev"):], initCode); err != 0 {
		return startError{proto.MakeSandbox, err, sandboxInitPath}
	}
	return startError{}
}

// makeProgram makes the file of a program.
func makeProgram(path, code string) syscall.Errno {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o555)
	if err == nil {
		_, err = syscall.Write(fd, []byte(code))
		syscall.Close(fd)
	}
	return errno(err)
}

// openSetup makes roost-setup and opens it. Its file has no name any more: it is of no
// use in the sandbox.
func openSetup(dev string) (fd int, why startError) {
	path := dev + "/setup"
	e := makeProgram(path, setupCode)
	if e == 0 {
		var err error
		if fd, err = syscall.Open(path, unix.O_PATH|syscall.O_CLOEXEC, 0); err == nil {
			err = syscall.Unlink(path)
		}
		e = errno(err)
	}
	if e != 0 {
		return -1, startError{proto.MakeSandbox, e, path}
	}
	return fd, startError{}
}

// makeNodes makes device nodes below dev that everybody may open, with the directories
// that they are in.
func makeNodes(dev string, devices []proto.DeviceNode) startError {
	for _, d := range devices {
		path := dev + d.Path[len("/dev"):]
		for i := len(dev) + 1; i < len(path); i++ {
			if path[i] == '/' {
				syscall.Mkdir(path[:i], 0o755)
			}
		}
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, int(unix.Mkdev(d.Major, d.Minor))); err != nil {
			return startError{proto.MakeSandbox, errno(err), d.Path}
		}
	}
	return startError{}
}

// userDataMounts lists where file systems with users' data are mounted, parents first,
// from a mountinfo file (proc(5)). The kernel's own are not among them, nor what lies
// where the box has its own.
func userDataMounts(info []byte) []string {
	var list []string
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
		if !isKernelFS(fs) && !isPrivateMount(at) {
			list = append(list, at)
		}
	}
	return list
}

// openMountNamespace makes the mount namespace that the claim's sandboxes copy. The
// namespace has the staged root as its root, and nothing else. The calling thread makes
// it and then returns to its own namespace.
func (s *starterProcess) openMountNamespace() (why startError) {
	if s.mountNamespace > 0 {
		return startError{}
	}
	const itself = "/proc/thread-self/ns/mnt"
	own, err := syscall.Open(itself, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		defer syscall.Close(own)
		err = syscall.Unshare(syscall.CLONE_NEWNS)
	}
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount namespace"}
	}
	fd, err := syscall.Open(itself, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	if err == nil {
		err = leaveOldRoot(s.dir + stagedRoot)
	}
	if back := unix.Setns(own, syscall.CLONE_NEWNS); back != nil {
		exitWithError("mount namespace", errno(back))
	}
	if err != nil {
		syscall.Close(fd)
		return startError{proto.MakeSandbox, errno(err), "pivot_root"}
	}
	s.mountNamespace = fd
	return startError{}
}

// leaveOldRoot makes a directory the root of this mount namespace, and takes the old one
// away.
func leaveOldRoot(root string) error {
	err := syscall.Chdir(root)
	if err == nil {
		err = syscall.PivotRoot(".", ".")
	}
	if err == nil {
		err = syscall.Unmount(".", syscall.MNT_DETACH)
	}
	return err
}

// hiddenMounts lists what the machine has mounted below the /tmp of sandboxes, parents
// first, as seen from their root. The list is read again when the kernel says that the
// mounts have changed (proc(5), /proc/pid/mounts).
func (s *starterProcess) hiddenMounts() []string {
	if s.mountInfo == 0 {
		fd, err := syscall.Open("/proc/thread-self/mountinfo", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return nil
		}
		s.mountInfo = fd
	} else {
		changed := [1]unix.PollFd{{Fd: int32(s.mountInfo), Events: unix.POLLPRI}}
		if n, err := unix.Poll(changed[:], 0); n == 0 && err == nil {
			return s.mountsHidden
		}
		syscall.Seek(s.mountInfo, 0, 0)
	}
	s.mountsHidden = mountsBelow(readOpen(s.mountInfo), s.dir+stagedRoot, proto.SandboxTempDir)
	return s.mountsHidden
}

// mountsBelow lists what is mounted below a directory of a root, parents first, as seen
// from that root.
func mountsBelow(info []byte, root, dir string) (below []string) {
	dir = root + dir
	for len(info) > 0 {
		text := procStatusLine(info)
		info = info[min(len(text)+1, len(info)):]
		if fields := words(text); len(fields) > 4 {
			if at := unescape(fields[4]); len(at) > len(dir) && at[:len(dir)] == dir && at[len(dir)] == '/' {
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

// isPrivateMount reports whether a box has its own instead of what is mounted there.
func isPrivateMount(at string) bool {
	for _, own := range [...]string{"/dev", "/proc", userServices} {
		if len(at) >= len(own) && at[:len(own)] == own && (len(at) == len(own) || at[len(own)] == '/') {
			return true
		}
	}
	return at == "/"
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
