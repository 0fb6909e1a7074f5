package containerimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/image/erofs"
	"github.com/roost-batch/roost/internal/store"
)

// fsType is the file system of images.
const fsType = "erofs"

// mountFlags are the flags of an image. Nobody changes it, and no program in it runs with
// other rights than its user's.
const mountFlags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV

// kernelMounts are the mounts of images.
type kernelMounts struct{ dir string }

// list returns the digests of the images that an earlier process has mounted.
func (k kernelMounts) list() (digests []store.Digest, err error) {
	real, err := filepath.EvalSymlinks(k.dir)
	if err != nil {
		return nil, err
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for _, name := range mountsIn(string(info), real) {
		if digest, err := store.ParseDigest("sha256:" + name); err == nil {
			digests = append(digests, digest)
		}
	}
	return digests, nil
}

// make mounts an image. Anybody may have put it into the store, so it must be one that
// Roost would have written: the kernel never reads another.
func (k kernelMounts) make(ctx context.Context, file, at string) error {
	if err := checkImage(ctx, file); err != nil {
		return err
	}
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return mountFile(file, at)
}

// checkImage reads all of an image but the contents of its files.
func checkImage(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return erofs.Walk(f, info.Size(), func(erofs.File) error { return ctx.Err() })
}

// remove unmounts an image. Tasks that have it keep it.
func (k kernelMounts) remove(at string) error {
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", at, err)
	}
	return os.Remove(at)
}

// sweep has nothing to do: the kernel forgets what is unmounted.
func (k kernelMounts) sweep() error { return nil }

// stays reports that nothing stays mounted when the process ends, but what tasks use.
func (k kernelMounts) stays() bool { return false }

// mountFile mounts an image. Since Linux 6.12 the kernel reads the file itself, and an
// older one needs a loop device.
func mountFile(file, at string) error {
	err := unix.Mount(file, at, fsType, mountFlags, "")
	if errors.Is(err, unix.ENOTBLK) || errors.Is(err, unix.EINVAL) {
		err = mountLoop(file, at)
	}
	switch {
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: this kernel has no EROFS (modprobe erofs)", err)
	case err != nil:
		return fmt.Errorf("mount of %s: %w", file, err)
	}
	return nil
}

// loopAttempts is how often a loop device is asked for: another process may take one that
// was free.
const loopAttempts = 16

// mountLoop mounts an image with a loop device. The kernel takes the device back when the
// mount is gone (loop(4)).
func mountLoop(file, at string) error {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("no loop device: %w", err)
	}
	defer control.Close()
	backing, err := os.Open(file)
	if err != nil {
		return err
	}
	defer backing.Close()
	for range loopAttempts {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return fmt.Errorf("no loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(number), os.O_RDONLY, 0)
		if err != nil {
			return fmt.Errorf("no loop device: %w", err)
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()),
			Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR}}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			err = unix.Mount(device.Name(), at, fsType, mountFlags, "")
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return fmt.Errorf("no loop device: %w", unix.EBUSY)
}

// mountsIn lists the names of what is mounted right below a directory, from a mountinfo
// file (proc(5)).
func mountsIn(info, dir string) (names []string) {
	for line := range strings.Lines(info) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
		if filepath.Dir(at) == dir {
			names = append(names, filepath.Base(at))
		}
	}
	return names
}
