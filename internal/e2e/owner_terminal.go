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

// apart is the shell script that starts a program with terminals of its own. The program
// sees no other device that a person could touch. So several machine owners can live on
// one machine, and none of them is the one who runs the test.
const apart = `for d in /dev/input /run/dbus /run/systemd /sys/class/input /sys/class/power_supply /sys/class/thermal; do
	[ ! -d $d ] || mount -t tmpfs none $d || exit
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && exec "$@"`

// SetsidCommand returns the command line by which root starts a program with terminals of
// its own. OpenTerminal opens them.
func SetsidCommand(command ...string) []string {
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", apart, "sh"}, command...)
}

// OwnerTerminal is a terminal that a machine owner types into, with both its ends.
type OwnerTerminal struct{ keys, screen *os.File }

// OpenTerminal opens a new terminal among those that a process sees, with a program that
// reads the input.
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

// openRaw opens a terminal in a way that a read ends when it is closed.
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

// TaskCgroups returns the control groups of a node's tasks that have a process. They come
// from the guard's state file.
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
