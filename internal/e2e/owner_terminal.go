package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
)

// apart is what a program is started with that is to see terminals of its own, and
// nothing else that a person, or a machine he carries, could touch: several owners live
// on one machine then, and none of them is the one who runs the test.
const apart = `for d in /dev/input /run/dbus /run/systemd /sys/class/input /sys/class/power_supply /sys/class/thermal; do
	[ ! -d $d ] || mount -t tmpfs none $d || exit
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && exec "$@"`

// SetsidCommand is the command line by which root starts a program so that it sees
// terminals of its own, which OpenTerminal opens.
func SetsidCommand(command ...string) []string {
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", apart, "sh"}, command...)
}

// OwnerTerminal is one into which somebody types: both its ends.
type OwnerTerminal struct{ keys, screen *os.File }

// OpenTerminal opens a new terminal among those that a process sees, with a program that
// reads what is typed there.
func OpenTerminal(pid int) (*OwnerTerminal, error) {
	dir := fmt.Sprintf("/proc/%d/root/dev/pts", pid)
	keys, err := openRaw(filepath.Join(dir, "ptmx"))
	if err != nil {
		return nil, err
	}
	t := &OwnerTerminal{keys: os.NewFile(uintptr(keys), "keys")}
	number, err := unix.IoctlGetInt(keys, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(keys, unix.TIOCSPTLCK, 0)
	}
	screen := -1
	if err == nil {
		screen, err = openRaw(filepath.Join(dir, fmt.Sprint(number)))
	}
	if err != nil {
		t.keys.Close()
		return nil, err
	}
	t.screen = os.NewFile(uintptr(screen), "screen")
	go io.Copy(io.Discard, t.keys) // the echo
	go io.Copy(io.Discard, t.screen)
	return t, nil
}

// openRaw opens a terminal so that a read of it ends when it is closed.
func openRaw(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// PressKey presses a key.
func (t *OwnerTerminal) PressKey() error {
	_, err := t.keys.WriteString("\n")
	return err
}

// Close closes the terminal.
func (t *OwnerTerminal) Close() {
	t.keys.Close()
	t.screen.Close()
}

// TaskCgroups are the directories in which the tasks of a node are, as its guard has
// written them down, those alone that have a process.
func TaskCgroups(nodeDir string) (all []cgroup.TaskDir) {
	var guardState struct{ Startds []struct{ Parents []string } }
	text, _ := os.ReadFile(filepath.Join(nodeDir, "owner", "startds.json"))
	if json.Unmarshal(text, &guardState) != nil {
		return nil
	}
	for _, s := range guardState.Startds {
		for _, parent := range s.Parents {
			all = append(all, cgroup.TaskDirs(parent)...)
		}
	}
	return slices.DeleteFunc(all, func(dir cgroup.TaskDir) bool { return len(dir.Processes()) == 0 })
}
