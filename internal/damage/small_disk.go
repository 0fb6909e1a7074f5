package damage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// SmallDisk mounts a file system of size bytes for a test, and returns its path. The test
// is skipped where nothing can be mounted. The name distinguishes it from the test's
// others. An empty directory remains afterwards: a task of another test that has seen it,
// and is restored from a checkpoint, needs it.
func SmallDisk(t testing.TB, name string, size int, mode os.FileMode) string {
	t.Helper()
	words := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	disk := filepath.Join(os.TempDir(), fmt.Sprintf("roost-disk-%s-%s%s", filepath.Base(os.Args[0]), words, name))
	err := os.Mkdir(disk, mode)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = syscall.Mount("roost-test", disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=%o", size, mode))
	}
	if err != nil {
		t.Skipf("SKIPPED: no file system can be mounted here: %v; small disks are not tested", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return disk
}
