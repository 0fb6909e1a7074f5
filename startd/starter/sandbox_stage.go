package starter

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

const (
	sandboxInitPath = "/dev/init"
	stagedRoot      = "/" + proto.SandboxRootDir // below the claim's directory: the root of the boxes
	stagedDev       = "/dev"                     // and their devices
)

// stageRoot builds the common part of all sandboxes of the claim, in the starter's own
// mount namespace. That part has the machine's files, the claim's devices, and the
// devices that every user may use. It follows the machine's mounts from task to task.
// hostTemp: the sandbox has the machine's /tmp. A container image takes the place of the
// machine's files.
func (s *starterProcess) stageRoot(o *proto.Sandbox, hostTemp bool) startError {
	why := startError{}
	switch {
	case initCode == "":
		why = startError{proto.MakeSandbox, syscall.ENOSYS, "not on this kind of processor"}
	case s.setup > 0:
		why = s.replaceDevices(o.Devices)
	default:
		why = s.stageDevices(o.Devices)
	}
	if why.step != proto.StepNone {
		return why
	}
	if o.Image.Root != "" {
		return stageImage(s, o)
	}
	if s.mounts.root != "" && !slices.Equal(s.mounts.packages, o.Packages) {
		s.stopServer()
		s.mounts.unstage(s.dir)
	}
	changed, why := s.mounts.stage(s.dir, hostTemp)
	if changed {
		s.stopServer() // it has a copy
		if why.step == proto.StepNone && len(o.Packages) > 0 {
			why = s.mounts.attachPackages(s.dir, o)
		}
	}
	return why
}

// stageDevices gives the starter a mount namespace of its own. In it are the directories
// of the staged root, and the devices.
func (s *starterProcess) stageDevices(devices []proto.DeviceNode) startError {
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
	if err := syscall.Mount("tmpfs", dev, "tmpfs", syscall.MS_NOSUID, "mode=755,size=1m"); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount on " + dev}
	}
	if why := populateDev(dev, devices); why.step != proto.StepNone {
		return why
	}
	setup, why := openSetup(dev)
	if why.step != proto.StepNone {
		return why
	}
	s.devices, s.setup = devices, setup
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
		if isNested() {
			syscall.Unmount(dev+d.Path[len("/dev"):], syscall.MNT_DETACH)
		}
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
		var low int
		if low, err = syscall.Open(path, unix.O_PATH|syscall.O_CLOEXEC, 0); err == nil {
			fd, err = unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, firstSetupFD)
			syscall.Close(low)
		}
		if err == nil {
			err = syscall.Unlink(path)
		}
		e = errno(err)
	}
	if e != 0 {
		return -1, startError{proto.MakeSandbox, e, path}
	}
	return fd, startError{}
}

// firstSetupFD is the lowest descriptor that roost-setup may have: those below are of the
// process that becomes it.
const firstSetupFD = serverGroupFD + 1

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
		err := syscall.Mknod(path, syscall.S_IFCHR|0o666, int(unix.Mkdev(d.Major, d.Minor)))
		if err == syscall.EPERM && isNested() {
			err = bindNode(d.Path, path)
		}
		if err != nil {
			return startError{proto.MakeSandbox, errno(err), d.Path}
		}
	}
	return startError{}
}

// isNested reports whether the starter is in a user namespace of its own, as root's is
// not. It makes no device nodes there, and what the machine has mounted stays where it is
// (mount_namespaces(7), "Restrictions on mount namespaces").
func isNested() bool { return syscall.Geteuid() != 0 }

// bindNode binds a device node of the machine.
func bindNode(node, at string) error {
	fd, err := syscall.Open(at, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	syscall.Close(fd)
	return syscall.Mount(node, at, "", syscall.MS_BIND, "")
}
