// Package boottime reads the clock that counts from the machine's boot.
//
// CLOCK_BOOTTIME goes on counting while the machine sleeps, and nobody can set it. Leases
// and deadlines of a node are instants of it.
package boottime

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine's boot, with the time that it slept.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // there is no Linux without it
	}
	return time.Duration(t.Nano())
}

// BootID returns the kernel's random name for this boot (random(4)).
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}
