package starter

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

const (
	stagedImage = "/image" // below the claim's directory: the image, until the overlay has it
	stagedUpper = "/upper" // below the claim's directory: what an image alone does not have
	// size of that, for mount points and a few small files
	upperOptions = "mode=755,size=4m"
	maxImageFile = 1 << 20 // bytes of a file of an image that a text is put before
)

// stageImage makes a container image the staged root of the claim's sandboxes, instead of
// the machine's root. The image itself is never written to: an overlay above it has the
// mount points and files that it lacks, and what tasks change if they may. Everything
// below the root is resolved within it, because the image is its user's: a symbolic link
// there leads nowhere else.
func stageImage(s *starterProcess, o *proto.Sandbox) startError {
	m, image := &s.mounts, &o.Image
	if m.root != "" && sameImage(&m.image, image) && slices.Equal(m.packages, o.Packages) {
		return startError{}
	}
	s.stopServer() // it has a copy
	m.unstage(s.dir)
	why := makeImageRoot(s.dir, o)
	m.root, m.image, m.packages = s.dir+stagedRoot, *image, o.Packages
	if why.step != proto.StepNone {
		m.unstage(s.dir)
	}
	return why
}

// makeImageRoot makes the staged root of an image.
func makeImageRoot(claim string, o *proto.Sandbox) startError {
	image := &o.Image
	if why := mountOverlay(claim, image); why.step != proto.StepNone {
		return why
	}
	root := claim + stagedRoot
	fd, err := syscall.Open(root, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), root}
	}
	defer syscall.Close(fd)
	inside := imageRoot(fd)
	if why := inside.attachSystem(claim + stagedDev); why.step != proto.StepNone {
		return why
	}
	for _, dir := range mountPoints(image) {
		if why := inside.makeDir(dir); why.step != proto.StepNone {
			return why
		}
	}
	for _, m := range image.Mounts {
		if m.File {
			if why := inside.makeFile(m.Inside); why.step != proto.StepNone {
				return why
			}
		}
	}
	for i := range o.Packages {
		if why := inside.attachPackage(o, &o.Packages[i], true); why.step != proto.StepNone {
			return why
		}
	}
	for _, f := range image.Files {
		if why := inside.writeFile(f); why.step != proto.StepNone {
			return why
		}
	}
	flags := uintptr(syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_NOSUID | syscall.MS_NODEV)
	if image.Writable == "" {
		flags |= syscall.MS_RDONLY
	}
	for _, change := range [...]uintptr{flags, syscall.MS_REC | syscall.MS_PRIVATE} {
		if err := syscall.Mount("", root, "", change, ""); err != nil {
			return startError{proto.MakeSandbox, errno(err), "mount on " + root}
		}
	}
	return startError{}
}

// unstage takes the staged root away. Sandboxes that have a copy keep it.
func (m *stagedMounts) unstage(dir string) {
	if m.root == "" {
		return
	}
	m.detachRoot()
	if m.image.Root != "" {
		syscall.Unmount(dir+stagedUpper, syscall.MNT_DETACH)
	}
	m.root, m.list, m.image, m.packages = "", nil, proto.RootImage{}, nil
}

// detachRoot takes away what is mounted on the staged root: the root, and what covers it
// for packages.
func (m *stagedMounts) detachRoot() {
	for range len(m.packages) + 1 {
		if syscall.Unmount(m.root, syscall.MNT_DETACH) != nil {
			return // it is not covered
		}
	}
}

// sameImage reports whether two images make the same root.
func sameImage(a, b *proto.RootImage) bool {
	return a.Root == b.Root && a.Writable == b.Writable && slices.Equal(a.Files, b.Files) &&
		slices.Equal(mountPoints(a), mountPoints(b)) && slices.EqualFunc(a.Mounts, b.Mounts,
		func(x, y proto.ImageMount) bool { return x.File == y.File && x.Inside == y.Inside })
}

// mountPoints lists the directories on which a sandbox with an image mounts something.
func mountPoints(image *proto.RootImage) []string {
	list := []string{"/proc", proto.SandboxTempDir, proto.SandboxSecretsDir}
	for _, m := range image.Mounts {
		if !m.File {
			list = append(list, m.Inside)
		}
	}
	return list
}

// mountOverlay mounts an image on the staged root, below what is changed.
func mountOverlay(dir string, image *proto.RootImage) startError {
	upper := dir + stagedUpper
	if image.Writable != "" {
		upper = image.Writable
	} else {
		if err := syscall.Mkdir(upper, 0o700); err != nil && err != syscall.EEXIST {
			return startError{proto.MakeSandbox, errno(err), upper}
		}
		if err := syscall.Mount("tmpfs", upper, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, upperOptions); err != nil {
			return startError{proto.MakeSandbox, errno(err), "mount on " + upper}
		}
	}
	changes, work := upper+"/changes", upper+"/work"
	for _, path := range [...]string{changes, work} {
		if err := syscall.Mkdir(path, 0o755); err != nil && err != syscall.EEXIST {
			return startError{proto.MakeSandbox, errno(err), path}
		}
	}
	root, lower := dir+stagedRoot, dir+stagedImage
	if err := bringImage(image, lower); err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount of the image " + image.Root}
	}
	defer syscall.Unmount(lower, syscall.MNT_DETACH) // the overlay has a copy
	options := "lowerdir=" + escapeOption(lower) + ",upperdir=" + escapeOption(changes) +
		",workdir=" + escapeOption(work)
	if isNested() {
		options += ",userxattr" // of others only root sets the marks of an overlay
	}
	err := syscall.Mount("overlay", root, "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, options)
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount of the image " + image.Root}
	}
	return startError{}
}

// bringImage mounts an image in the starter's mount namespace. One that was mounted after
// the starter began is not to be seen there. All tasks of the machine have the same
// mount, and the same pages in memory.
func bringImage(image *proto.RootImage, at string) error {
	if err := syscall.Mkdir(at, 0o700); err != nil && err != syscall.EEXIST {
		return err
	}
	tree, err := cloneMount(image.Root, image.Namespace)
	if err != nil {
		return err
	}
	defer syscall.Close(tree)
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// cloneMount clones the mount of an image or package, in the namespace that has it; empty
// for the starter's.
func cloneMount(root, namespace string) (tree int, err error) {
	clone := func() {
		tree, err = unix.OpenTree(unix.AT_FDCWD, root, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	}
	if namespace == "" {
		clone()
		return tree, err
	}
	own, err := syscall.Open("/proc/thread-self/ns/mnt", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(own)
	other, err := syscall.Open(namespace, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(other)
	if err = unix.Setns(other, syscall.CLONE_NEWNS); err != nil {
		return -1, err
	}
	clone()
	if back := unix.Setns(own, syscall.CLONE_NEWNS); back != nil {
		exitWithError("it cannot return to its mount namespace", errno(back)) // and its startd makes another
	}
	return tree, err
}

// escapeOption escapes what separates the options of an overlay (Linux,
// Documentation/filesystems/overlayfs.rst).
func escapeOption(path string) string {
	var out []byte
	for i := range len(path) {
		if c := path[i]; c == ',' || c == ':' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, path[i])
	}
	return string(out)
}

// imageRoot is a descriptor of the staged root of an image.
type imageRoot int

// inImage resolves a path as if the image were the root, its symbolic links as well.
const inImage = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// attachSystem binds the sandbox's devices, and the machine's /sys for reading. A user
// can mount a /proc only where another is to be seen, so it is below that of the sandbox
// (Linux, mount_too_revealing).
func (r imageRoot) attachSystem(dev string) startError {
	type binding struct {
		path, to string
		attr     uint64
	}
	list := []binding{{dev, "/dev", 0},
		{"/sys", "/sys", unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}}
	if isNested() {
		list = append(list, binding{"/proc", "/proc", 0})
	}
	for _, from := range list {
		if why := r.makeDir(from.to); why.step != proto.StepNone {
			return why
		}
		if err := r.attach(from.path, from.to, from.attr); err != nil {
			return startError{proto.MakeSandbox, errno(err), "mount on " + from.to}
		}
	}
	return startError{}
}

// attach mounts a directory of the machine in the image.
func (r imageRoot) attach(from, to string, attr uint64) error {
	at, err := r.open(to, unix.O_PATH|syscall.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer syscall.Close(at)
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if isNested() { // the kernel shows no directory without what is mounted below it
		flags |= unix.AT_RECURSIVE
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, flags)
	if err != nil {
		return err
	}
	defer syscall.Close(tree)
	if attr != 0 {
		if err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attr}); err != nil {
			return err
		}
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// open opens a path of the image.
func (r imageRoot) open(path string, flags uint64) (fd int, err error) {
	return unix.Openat2(int(r), path, &unix.OpenHow{Flags: flags | syscall.O_CLOEXEC, Resolve: inImage})
}

// makeDir makes a directory of the image, and those above it, unless they are there.
func (r imageRoot) makeDir(path string) startError {
	fd, err := r.openMade(path)
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), "directory " + path + " of the image"}
	}
	syscall.Close(fd)
	return startError{}
}

// makeFile makes an empty file of the image, and the directories above it, unless
// something is there.
func (r imageRoot) makeFile(path string) startError {
	name := len(path)
	for name > 1 && path[name-1] != '/' {
		name--
	}
	failed := func(err error) startError {
		return startError{proto.MakeSandbox, errno(err), "file " + path + " of the image"}
	}
	if fd, err := r.open(path, unix.O_PATH); err == nil {
		syscall.Close(fd)
		return startError{}
	}
	dir, err := r.openMade(path[:max(name-1, 1)])
	if err != nil {
		return failed(err)
	}
	defer syscall.Close(dir)
	fd, err := syscall.Openat(dir, path[name:],
		syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return failed(err)
	}
	syscall.Close(fd)
	return startError{}
}

// openMade opens a directory of the image after it has made what is missing of it.
func (r imageRoot) openMade(path string) (fd int, err error) {
	at := int(r)
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '/' {
			continue
		}
		name, start := path[:end], end
		for start > 0 && path[start-1] != '/' {
			start--
		}
		fd, err = r.open(name, unix.O_PATH|syscall.O_DIRECTORY)
		if err == syscall.ENOENT {
			if err = syscall.Mkdirat(at, path[start:end], 0o755); err == nil {
				fd, err = r.open(name, unix.O_PATH|syscall.O_DIRECTORY)
			}
		}
		if at != int(r) {
			syscall.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = fd
	}
	return at, nil
}

// writeFile puts a text before what a file of the image has, in a new file.
func (r imageRoot) writeFile(f proto.ImageFile) startError {
	name := len(f.Path)
	for name > 1 && f.Path[name-1] != '/' {
		name--
	}
	failed := func(err error) startError { return startError{proto.MakeSandbox, errno(err), f.Path + " of the image"} }
	var old []byte
	if !f.Replace {
		old = r.readFile(f.Path)
	}
	dir, err := r.openMade(f.Path[:max(name-1, 1)])
	if err != nil {
		return failed(err)
	}
	defer syscall.Close(dir)
	if err = unix.Unlinkat(dir, f.Path[name:], 0); err != nil && err != syscall.ENOENT {
		return failed(err)
	}
	fd, err := syscall.Openat(dir, f.Path[name:],
		syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return failed(err)
	}
	defer syscall.Close(fd)
	if e := writeAt(fd, append([]byte(f.Text), old...), 0); e != 0 {
		return failed(e)
	}
	return startError{}
}

// readFile reads a small file of the image; nil when there is none.
func (r imageRoot) readFile(path string) []byte {
	fd, err := r.open(path, syscall.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var status syscall.Stat_t
	if syscall.Fstat(fd, &status) != nil || status.Mode&syscall.S_IFMT != syscall.S_IFREG ||
		status.Size > maxImageFile {
		return nil
	}
	return readOpen(fd)
}

// cloneUserDirs clones the user's directories that a sandbox with an image has. They are
// opened with the user's rights, here in a process of the task: for a file server that
// does not answer nobody else waits. It returns the calls whose results are the mounts.
func (l *syscallList) cloneUserDirs(o *proto.StartCmd) []int {
	mounts := o.Sandbox.Image.Mounts
	if len(mounts) == 0 {
		return nil
	}
	if !isNested() { // which is the user
		l.must(proto.Credentials, "", syscall.SYS_SETGROUPS, uint64(len(o.Groups)), l.groups(o.Groups))
		l.try(syscall.SYS_SETFSGID, uint64(o.GID))
		l.try(syscall.SYS_SETFSUID, uint64(o.UID))
	}
	const anything, directory = unix.O_PATH | syscall.O_CLOEXEC, unix.O_PATH | syscall.O_DIRECTORY | syscall.O_CLOEXEC
	trees := make([]int, len(mounts))
	for i, m := range mounts {
		path, base, how := m.Base, uint64(directory), uint64(directory)
		if m.File {
			how = anything
			if m.Path == "" {
				base = anything
			}
		}
		last := l.must(proto.MountDir, path, syscall.SYS_OPENAT, currentDir, l.text(m.Base), base)
		if m.Path != "" {
			path += "/" + m.Path
			below := l.must(proto.MountDir, path, unix.SYS_OPENAT2, 0, l.text(m.Path),
				l.words(how, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS), unix.SizeofOpenHow)
			l.calls[last].result = l.argument(below, 0)
			last = below
		}
		trees[i] = l.must(proto.MountDir, path, unix.SYS_OPEN_TREE, 0, l.text(""),
			unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
		l.calls[last].result = l.argument(trees[i], 0)
	}
	if !isNested() {
		l.try(syscall.SYS_SETFSUID, 0)
		l.try(syscall.SYS_SETFSGID, 0)
		l.try(syscall.SYS_SETGROUPS, 0, 0)
	}
	return trees
}

// attachUserDirs attaches the user's directories, within the root that is the image.
func (l *syscallList) attachUserDirs(o *proto.StartCmd, trees []int) {
	for i, tree := range trees {
		m := &o.Sandbox.Image.Mounts[i]
		l.attach(tree, m.Inside)
		attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
		if m.ReadOnly {
			attr |= unix.MOUNT_ATTR_RDONLY
		}
		l.must(proto.MakeSandbox, "mount on "+m.Inside, unix.SYS_MOUNT_SETATTR, currentDir, l.text(m.Inside),
			unix.AT_RECURSIVE, l.words(attr, 0, 0, 0), unix.MOUNT_ATTR_SIZE_VER0)
	}
}
