package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// attachPackages mounts packages in the staged root, which has the machine's files. The
// machine may have no directory where a package is to be, and gets none: a small file
// system covers the directory that lacks it, and has all that the directory has beside
// it.
func (m *stagedMounts) attachPackages(claim string, o *proto.Sandbox) startError {
	m.packages = o.Packages
	for i := range o.Packages {
		// A package may have covered the root that the one before it has seen.
		fd, err := syscall.Open(m.root, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		why := startError{proto.MakeSandbox, errno(err), m.root}
		if err == nil {
			why = imageRoot(fd).attachPackage(o, &o.Packages[i], false)
			syscall.Close(fd)
		}
		if why.step != proto.StepNone {
			m.unstage(claim)
			return why
		}
	}
	return startError{}
}

// attachPackage mounts a package. A missing directory is made if the root is an image's,
// which lies below an overlay.
func (r imageRoot) attachPackage(o *proto.Sandbox, p *proto.PackageMount, isImage bool) startError {
	failed := func(err error) startError {
		return startError{proto.MakeSandbox, errno(err), "mount of a package on " + p.Inside}
	}
	tree, err := cloneMount(p.Root, o.Namespace)
	if err != nil {
		return failed(err)
	}
	defer syscall.Close(tree)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
	if err != nil {
		return failed(err)
	}
	at := -1
	if isImage {
		at, err = r.openMade(p.Inside)
	} else if at, err = r.open(p.Inside, unix.O_PATH|syscall.O_DIRECTORY); err == syscall.ENOENT {
		var why startError
		if at, why = r.openCovered(p.Inside); why.step != proto.StepNone {
			return why
		}
		err = nil
	}
	if err != nil {
		return failed(err)
	}
	defer syscall.Close(at)
	if err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return failed(err)
	}
	return startError{}
}

// openCovered opens a directory that the machine does not have. It is in a file system
// that covers the nearest directory above it.
func (r imageRoot) openCovered(path string) (fd int, why startError) {
	above, end := -1, len(path)
	err := error(syscall.ENOENT)
	for err == syscall.ENOENT && end > 0 {
		for end--; end > 0 && path[end] != '/'; end-- {
		}
		above, err = r.open(path[:max(end, 1)], syscall.O_RDONLY|syscall.O_DIRECTORY)
	}
	name := path[:max(end, 1)]
	if err != nil {
		return -1, startError{proto.MakeSandbox, errno(err), name + ", in which a package is to be"}
	}
	defer syscall.Close(above)
	cover, why := coverDirectory(above, name)
	if why.step != proto.StepNone {
		return -1, why
	}
	defer syscall.Close(cover)
	rest := path[end:]
	if end == 0 {
		rest = path
	}
	fd, err = imageRoot(cover).openMade(rest)
	if err == nil {
		err = unix.MountSetattr(cover, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		return -1, startError{proto.MakeSandbox, errno(err), "directory " + path}
	}
	return fd, startError{}
}

// maxCovered bounds the files of a directory that is covered.
const maxCovered = 4096

// coverDirectory mounts a file system over a directory, with all files of the directory
// bound in it. It returns the root of that file system. Nobody but root may be able to
// write to the directory: what a task makes in it would be lost.
func coverDirectory(dir int, name string) (cover int, why startError) {
	failed := func(err error, what string) (int, startError) {
		return -1, startError{proto.MakeSandbox, errno(err), what}
	}
	var status syscall.Stat_t
	if err := syscall.Fstat(dir, &status); err != nil {
		return failed(err, name)
	}
	ownersOwn := status.Uid != 0
	if isNested() { // root has no number there
		ownersOwn = unix.Faccessat(dir, ".", unix.W_OK, 0) == nil
	}
	if ownersOwn || status.Mode&0o022 != 0 {
		return failed(syscall.ENOENT, "the directory for a package below "+name+", where users make their own: make it")
	}
	list, err := directoryNames(dir)
	if err != nil {
		return failed(err, name)
	}
	if cover, err = newFileSystem("tmpfs", "mode", "755", "size", "4m"); err != nil {
		return failed(err, "a file system over "+name)
	}
	err = unix.MoveMount(cover, "", dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	for _, entry := range list {
		if err == nil {
			err = bindEntry(dir, cover, entry)
		}
	}
	if err != nil {
		syscall.Close(cover)
		return failed(err, "a file system over "+name)
	}
	return cover, startError{}
}

// newFileSystem makes a file system that is mounted nowhere yet. Options are names and
// values in turn.
func newFileSystem(kind string, options ...string) (mount int, err error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fd)
	for i := 0; i < len(options) && err == nil; i += 2 {
		err = unix.FsconfigSetString(fd, options[i], options[i+1])
	}
	if err == nil {
		err = unix.FsconfigCreate(fd)
	}
	if err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// directoryNames lists a directory.
func directoryNames(dir int) (names []string, err error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := syscall.ReadDirent(dir, buffer)
		if err != nil || n == 0 {
			return names, err
		}
		if _, _, names = syscall.ParseDirent(buffer[:n], -1, names); len(names) > maxCovered {
			return nil, syscall.E2BIG
		}
	}
}

// bindEntry binds a file of a directory in another one, with what is mounted below it. A
// symbolic link is copied.
func bindEntry(from, to int, name string) error {
	var status unix.Stat_t
	if err := unix.Fstatat(from, name, &status, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return ignoreMissing(err)
	}
	switch status.Mode & syscall.S_IFMT {
	case syscall.S_IFLNK:
		var target [syscall.PathMax]byte
		n, err := unix.Readlinkat(from, name, target[:])
		if err != nil {
			return ignoreMissing(err)
		}
		return unix.Symlinkat(string(target[:n]), to, name)
	case syscall.S_IFDIR:
		if err := unix.Mkdirat(to, name, 0o755); err != nil {
			return err
		}
	default:
		fd, err := unix.Openat(to, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		syscall.Close(fd)
	}
	tree, err := unix.OpenTree(from, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|
		unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return ignoreMissing(err)
	}
	defer syscall.Close(tree)
	return unix.MoveMount(tree, "", to, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// ignoreMissing ignores the error of a file that was deleted meanwhile.
func ignoreMissing(err error) error {
	if err == syscall.ENOENT {
		return nil
	}
	return err
}
