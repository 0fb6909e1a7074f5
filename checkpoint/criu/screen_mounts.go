package criu

import (
	"path/filepath"
	"strings"

	"github.com/checkpoint-restore/go-criu/v7/crit/images/mnt"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/checkpoint/image"
)

// sandboxMounts returns the file systems of a sandbox that CRIU makes, by mount point.
func sandboxMounts() map[string]mnt.Fstype {
	return map[string]mnt.Fstype{"/proc": mnt.Fstype_PROC, "/dev/mqueue": mnt.Fstype_MQUEUE,
		"/dev/pts": mnt.Fstype_DEVPTS, "/dev/shm": mnt.Fstype_TMPFS}
}

// screenMounts checks that the mounts are those of a sandbox. Allowed are the machine's
// root, the sandbox's own mounts, and mounts from outside, each from its own path on the
// machine or from the spec.
func screenMounts(spec *RestoreSpec, n *imageMetadata) error {
	outside := map[string]bool{}
	for _, m := range n.Mounts {
		if m.Key != "" || !filepath.IsAbs(m.Inside) || filepath.Clean(m.Inside) != m.Inside || m.Inside == "/" ||
			outside[m.key()] {
			return badImageError("it has a mount at %.200q", m.Inside)
		}
		outside[m.key()] = true
	}
	path, err := mountsFile(spec.Dir)
	if err != nil {
		return err
	}
	all, err := readEntries(spec.Dir, filepath.Base(path), func() *mnt.MntEntry { return &mnt.MntEntry{} })
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, m := range all {
		at := m.GetMountpoint()
		if seen[at] || m.GetSharedId() != 0 || m.GetMasterId() != 0 || m.GetWithPlugin() ||
			!isExpectedMount(m, outside) {
			return badImageError("it has a mount at %.200q", at)
		}
		seen[at] = true
	}
	if !seen["/"] {
		return badImageError("it has no root")
	}
	return nil
}

// mountsFile returns the path of the list of mounts in an unpacked image.
func mountsFile(dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, image.CRIUDir, "mountpoints-*.img"))
	if err != nil || len(names) != 1 {
		return "", badImageError("it has %d lists of mounts", len(names))
	}
	return names[0], nil
}

func isExpectedMount(m *mnt.MntEntry, outside map[string]bool) bool {
	at, key := m.GetMountpoint(), m.GetExtKey()
	if key != "" {
		return outside[key] && ExternalMount{Inside: at}.key() == key
	}
	if at == "/" {
		return !m.GetExtMount()
	}
	fs, made := sandboxMounts()[at]
	bare := uint32(unix.MS_NOSUID | unix.MS_NODEV)
	return made && uint32(fs) == m.GetFstype() && m.GetRoot() == "/" && !m.GetExtMount() && m.GetFsname() == "" &&
		!strings.HasPrefix(m.GetSource(), "/") &&
		(fs != mnt.Fstype_TMPFS || m.GetFlags()&bare == bare)
}
