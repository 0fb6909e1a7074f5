package containerimage

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MissingSupport says what the kernel lacks for container images; empty when it has all
// that this process needs.
func MissingSupport() string {
	if os.Geteuid() != 0 {
		return missingUserOverlay()
	}
	return missingFileSystem()
}

// missingFileSystem says which file system the kernel lacks. To ask for one loads its
// module.
func missingFileSystem() string {
	for _, name := range []string{"erofs", "overlay"} {
		fd, err := unix.Fsopen(name, unix.FSOPEN_CLOEXEC)
		if err != nil {
			return fmt.Sprintf("the kernel has no file system %s: %v", name, err)
		}
		unix.Close(fd)
	}
	return ""
}

// missingUserOverlay says why a user's namespace can have no overlay. It can since Linux
// 5.11.
func missingUserOverlay() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Sprintf("the kernel does not say its version: %v", err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 11 {
		return fmt.Sprintf("Linux %s has no overlays for users; 5.11 has", release)
	}
	return ""
}
