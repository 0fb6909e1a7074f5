package cgroup

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMissing checks that a controller without permission is not reported as missing from
// the kernel.
func TestMissing(t *testing.T) {
	all := map[string]bool{}
	for _, name := range controllers() {
		all[name] = true
	}
	denied := fmt.Errorf("write it: %w", unix.EACCES)
	cases := []struct {
		name string
		host *ParentGroup
		why  error
		want []string
	}{
		{"not ours, version 1", &ParentGroup{mounts: cgroupMounts{v1: "/cg", version1Controllers: all}},
			denied, []string{
				"no shares of CPU time, sets of cores, limits of memory, isolation of devices, limits of processes, " +
					"freezing, limits of disk I/O: " + causeOf(denied) + "; " + cureOf(denied),
			}},
		{"everything", &ParentGroup{enforcement: Enforcement{Version: 1, CPU: true, Cpuset: true, Memory: true,
			Devices: true, Pids: true, Freeze: true, IOLimits: true}}, nil, nil},
		{"devices", &ParentGroup{enforcement: Enforcement{Version: 2, CPU: true, Cpuset: true, Memory: true, Pids: true,
			Freeze: true, IOLimits: true}}, nil, []string{
			"no isolation of devices: only root may do that; " + cureOf(nil),
		}},
	}
	for _, c := range cases {
		if got := c.host.missingReasons(c.why); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
