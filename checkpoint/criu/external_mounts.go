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

	"golang.org/x/sys/unix"
)

// externalMounts lists the mounts of a process that CRIU cannot make by itself. CRIU
// makes the root and the small file systems of the namespaces, with their contents.
func externalMounts(pid int) ([]ExternalMount, error) {
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
	return list, nil
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
	for i, m := range r.metadata.Mounts {
		from, ok := r.spec.External[m.key()]
		if !ok {
			from = m.Inside
		}
		to := filepath.Join(base, strconv.Itoa(i))
		if err := putAt(from, to); err != nil {
			return fmt.Errorf("%s, which it could see, cannot be seen here: %w", m.Inside, err)
		}
		r.mountSources[m.key()] = to
	}
	return nil
}

// putAt mounts from at to, which it creates. System directories differ between machines:
// a missing one becomes an empty directory.
func putAt(from, to string) error {
	info, err := os.Stat(from)
	system := strings.HasPrefix(from, "/run/") || strings.HasPrefix(from, "/sys/")
	switch {
	case errors.Is(err, fs.ErrNotExist) && system:
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		from = to
	case err != nil:
		return err
	case info.IsDir():
		err = os.Mkdir(to, 0o755)
	default:
		err = os.WriteFile(to, nil, 0o600)
	}
	if err == nil || from == to {
		err = unix.Mount(from, to, "", unix.MS_BIND, "")
	}
	return err
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
