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

// Systemd reports whether systemd runs this machine (sd_booted(3)) and can start this
// node's daemons.
func (p NodePaths) Systemd() bool {
	info, err := os.Lstat("/run/systemd/system")
	return p.IsSystem() && err == nil && info.IsDir()
}

// UnitsInstalled reports whether the units are installed where systemd finds them.
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

// StartUnits lets systemd start the units now and at each boot.
func StartUnits(ctx context.Context, units ...string) error {
	return systemctl(ctx, "enable", append([]string{"--now"}, units...)...)
}

// StopUnits is the inverse of StartUnits, for the units that exist.
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

// NodeUnits returns the installed units that a node needs. A desktop also has a guard,
// which outlives the other daemons.
func NodeUnits(desktop bool) []string {
	wanted := []string{"roost.service"}
	all, _ := unitNames() // embedded in this program, so there is no error
	for _, name := range all {
		if desktop && name == "roost-guard.service" {
			wanted = append(wanted, name)
		}
	}
	return wanted
}
