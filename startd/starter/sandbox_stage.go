package starter

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

const (
	sandboxInitPath = "/dev/init"
	stagedRoot      = "/root" // below the claim's directory: the root of the sandboxes
	stagedDev       = "/dev"  // and their devices
)

// stageRoot prepares what all sandboxes of the claim share, in a mount namespace of the
// starter's own. These are the machine's files, the devices that everybody may use and
// those of the claim. Later mounts of the machine propagate into it.
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
		syscall.Mount(at, root+at, "", syscall.MS_BIND, "") // a mount that is gone meanwhile, or hidden, is not needed
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
	s.rootStaged, s.devices = true, o.Sandbox.Devices
	return startError{}
}

// replaceDevices replaces the claim's devices. A claim in a queue gets the devices that
// are free when it starts.
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

// populateDev creates the devices, the mount points below /dev, and the program
// roost-init.
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
	path := dev + sandboxInitPath[len("/dev"):]
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o555)
	if err == nil {
		_, err = syscall.Write(fd, []byte(initCode))
		syscall.Close(fd)
	}
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), sandboxInitPath}
	}
	return startError{}
}

// makeNodes makes device nodes below dev that everybody may open, with their directories.
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

// userDataMounts lists the mount points of file systems with users' data, parents first.
// It reads a mountinfo file (proc(5)) and omits kernel file systems and the places where
// a sandbox has its own.
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

// isKernelFS reports whether a file system shows kernel state and no data.
func isKernelFS(fs string) bool {
	switch fs {
	case "proc", "cgroup", "cgroup2", "devtmpfs", "devpts", "mqueue", "debugfs", "tracefs", "securityfs", "pstore",
		"bpf", "configfs", "fusectl",
		"hugetlbfs", "binfmt_misc", "autofs", "nsfs", "rpc_pipefs", "efivarfs", "selinuxfs", "":
		return true
	}
	return false
}

// isPrivateMount reports whether a sandbox has its own version of what is mounted there.
func isPrivateMount(at string) bool {
	for _, own := range [...]string{"/dev", "/proc", userServices} {
		if len(at) >= len(own) && at[:len(own)] == own && (len(at) == len(own) || at[len(own)] == '/') {
			return true
		}
	}
	return at == "/"
}

// userServices is the directory of the sockets of users' service managers. Through them a
// task could run something outside its sandbox.
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

// unescape decodes the octal escapes of spaces and similar characters.
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
