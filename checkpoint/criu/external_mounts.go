package criu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/checkpoint-restore/go-criu/v7/crit/images/mnt"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// externalMounts lists the mounts of a process that CRIU cannot make by itself. CRIU
// makes the root and the small file systems of the namespaces, with their contents. The
// user is the task's.
func externalMounts(pid int, user userfiles.UserCredential) ([]ExternalMount, error) {
	text, err := os.ReadFile(procPath(pid, "mountinfo"))
	if err != nil {
		return nil, err
	}
	var list []ExternalMount
	for line := range strings.Lines(string(text)) {
		at, source, fs := parseMount(line)
		made := fs == "proc" && source == "/" || fs == "mqueue" || fs == "devpts" || fs == "tmpfs" && source == "/" &&
			at == "/dev/shm"
		if at != "" && at != "/" && !made && !slices.ContainsFunc(list, func(m ExternalMount) bool {
			return m.Inside == at
		}) {
			list = append(list, ExternalMount{Inside: at})
		}
	}
	return list, markUnreachable(pid, user, list)
}

// markUnreachable finds the mounts that the task's user cannot reach. An example is one
// within a directory of another user or of a daemon. The task cannot have used them.
func markUnreachable(pid int, user userfiles.UserCredential, list []ExternalMount) error {
	root, err := unix.Open(procPath(pid, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return withUserRights(user, func() error {
		for i := range list {
			at, err := unix.Openat(root, strings.TrimPrefix(list[i].Inside, "/"), unix.O_PATH|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(at)
			}
			list[i].Unreachable = errors.Is(err, unix.EACCES)
		}
		return nil
	})
}

// gather bind-mounts every external mount to a place of its own, without the mounts below
// it. CRIU clones them from within the task's user namespace, if it has one, and there
// the kernel refuses to clone a mount with hidden mounts below it.
func (r *restoreAgent) gather() error {
	base := filepath.Join(r.spec.Dir, "mounts")
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount on %s: %w", base, err)
	}
	r.mountSources = make(map[string]string, len(r.metadata.Mounts))
	reachable, dropped := r.metadata.Mounts[:0], map[string]bool{}
	for i, m := range r.metadata.Mounts {
		to := filepath.Join(base, strconv.Itoa(i))
		err := r.gatherMount(m, to)
		if errors.Is(err, fs.ErrNotExist) && m.isDispensable() {
			dropped[m.key()] = true
			continue
		}
		if err != nil {
			return fmt.Errorf("%s, which it could see, cannot be seen here: %w", m.Inside, err)
		}
		r.mountSources[m.key()] = to
		reachable = append(reachable, m)
	}
	r.metadata.Mounts = reachable
	return dropMounts(r.spec.Dir, dropped)
}

// gatherMount mounts what comes from outside at to, which it creates.
func (r *restoreAgent) gatherMount(m ExternalMount, to string) error {
	if from, ok := r.spec.External[m.key()]; ok {
		return putAt(from, to)
	}
	if r.spec.Container.Root == "" {
		return putAt(m.Inside, to)
	}
	if m.Inside == "/sys" {
		return errors.Join(putAt(m.Inside, to), restrictMount(to, true))
	}
	for _, dir := range r.spec.Container.Dirs {
		if rest, ok := strings.CutPrefix(m.Inside, dir.Inside); ok && (rest == "" || rest[0] == '/') {
			return r.gatherUserDir(dir, strings.TrimPrefix(rest, "/"), to)
		}
	}
	return fmt.Errorf("%w: a container has nothing there", fs.ErrNotExist)
}

// gatherUserDir mounts a directory of the user's, or one that is mounted below it. It is
// opened with the user's rights, as at the start of a task.
func (r *restoreAgent) gatherUserDir(dir proto.ImageMount, below, to string) error {
	fd := -1
	err := withUserRights(r.spec.User, func() (err error) {
		kind := unix.O_DIRECTORY
		if dir.File {
			kind = 0
		}
		if dir.File && dir.Path == "" {
			fd, err = unix.Open(dir.Base, unix.O_PATH|unix.O_CLOEXEC, 0)
			return err
		}
		base, err := unix.Open(dir.Base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(base)
		fd, err = unix.Openat2(base, filepath.Join(".", dir.Path, below), &unix.OpenHow{
			Flags:   uint64(unix.O_PATH | kind | unix.O_CLOEXEC),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
		})
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := putAt(fmt.Sprintf("/proc/self/fd/%d", fd), to); err != nil {
		return err
	}
	return restrictMount(to, dir.ReadOnly)
}

// restrictMount keeps set-user-id programs and devices of a mount from working. Its files
// cannot be changed if it is only read.
func restrictMount(at string, readOnly bool) error {
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if readOnly {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	return unix.MountSetattr(unix.AT_FDCWD, at, 0, &unix.MountAttr{Attr_set: attr})
}

// isDispensable reports whether a mount may be left out on a machine that does not have
// it. System directories differ between machines, and what the task could not reach is
// nothing to it. CRIU refuses the image if the task has files open there.
func (m ExternalMount) isDispensable() bool {
	return m.Unreachable || strings.HasPrefix(m.Inside, "/run/") || strings.HasPrefix(m.Inside, "/sys/")
}

// putAt mounts from at to, which it creates.
func putAt(from, to string) error {
	info, err := os.Stat(from)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		err = os.Mkdir(to, 0o755)
	default:
		err = os.WriteFile(to, nil, 0o600)
	}
	if err != nil {
		return err
	}
	return unix.Mount(from, to, "", unix.MS_BIND, "")
}

// dropMounts takes mounts from outside, given by key, out of an unpacked image.
func dropMounts(dir string, keys map[string]bool) error {
	if len(keys) == 0 {
		return nil
	}
	path, err := mountsFile(dir)
	if err != nil {
		return err
	}
	all, err := readEntries(dir, filepath.Base(path), func() *mnt.MntEntry { return &mnt.MntEntry{} })
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m *mnt.MntEntry) bool { return keys[m.GetExtKey()] })
	return rewriteEntries(path, all)
}

// parseMount returns mount point, root within the file system, and type from a line of a
// mountinfo file (proc(5)).
func parseMount(line string) (at, source, fs string) {
	left, right, ok := strings.Cut(line, " - ")
	fields, types := strings.Fields(left), strings.Fields(right)
	if !ok || len(fields) < 6 || len(types) < 1 {
		return "", "", ""
	}
	undo := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	return undo.Replace(fields[4]), undo.Replace(fields[3]), types[0]
}

// key returns the name of a mount in an image. CRIU's syntax does not allow some
// characters.
func (m ExternalMount) key() string {
	if m.Key != "" {
		return m.Key
	}
	return strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || r == ':' {
			return '_'
		}
		return r
	}, m.Inside)
}
