package enroll

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// Systemd reports whether systemd runs this machine (sd_booted(3)), and so starts this
// node's daemons.
func (p NodePaths) Systemd() bool {
	info, err := os.Lstat("/run/systemd/system")
	return p.IsSystem() && err == nil && info.IsDir()
}

// UnitsInstalled reports whether the units are where systemd finds them.
func UnitsInstalled() bool { return unitsInstalled("roost.service") }

func unitsInstalled(unit string) bool {
	for _, dir := range []string{"/etc/systemd/system", defaultPrefix + "/lib/systemd/system",
		"/usr/lib/systemd/system", "/lib/systemd/system"} {
		if _, err := os.Stat(filepath.Join(dir, unit)); err == nil {
			return true
		}
	}
	return false
}

// StartUnits has systemd start the node now and whenever the machine does.
func StartUnits(ctx context.Context, units ...string) error {
	return systemctl(ctx, "enable", append([]string{"--now"}, units...)...)
}

// StopUnits undoes StartUnits, for the units that there are.
func StopUnits(ctx context.Context, units ...string) error {
	units = slices.DeleteFunc(slices.Clone(units), func(unit string) bool { return !unitsInstalled(unit) })
	return systemctl(ctx, "disable", append([]string{"--now"}, units...)...)
}

func systemctl(ctx context.Context, verb string, args ...string) error {
	for _, words := range [][]string{{"daemon-reload"}, append([]string{verb}, args...)} {
		out, err := exec.CommandContext(ctx, "systemctl", words...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("systemctl %s: %w: %w: %s", strings.Join(words, " "), roost.Unavailable,
				err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// NodeUnits are the units that a machine with that node needs, of those that there are:
// one that people sit at has a guard that outlives the rest.
func NodeUnits(desktop bool) []string {
	wanted := []string{"roost.service"}
	all, _ := unitNames() // of this program itself
	for _, name := range all {
		if desktop && name == "roost-guard.service" {
			wanted = append(wanted, name)
		}
	}
	return wanted
}
