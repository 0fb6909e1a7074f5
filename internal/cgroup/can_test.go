package cgroup

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMissing: what is there but not to be used is not said to be missing from the kernel.
func TestMissing(t *testing.T) {
	all := map[string]bool{}
	for _, name := range controllers() {
		all[name] = true
	}
	denied := fmt.Errorf("write it: %w", unix.EACCES)
	cases := []struct {
		name string
		host *Host
		why  error
		want []string
	}{
		{"not ours, version 1", &Host{mounts: mounts{v1: "/cg", has: all}}, denied, []string{
			"no shares of CPU time, sets of cores, limits of memory, isolation of devices, limits of processes, freezing: " + cause(denied) + "; " + cure(denied),
		}},
		{"everything", &Host{can: Can{Version: 1, CPU: true, Cpuset: true, Memory: true, Devices: true, Pids: true, Freeze: true}}, nil, nil},
		{"devices", &Host{can: Can{Version: 2, CPU: true, Cpuset: true, Memory: true, Pids: true, Freeze: true}}, nil, []string{
			"no isolation of devices: only root may do that; " + cure(nil),
		}},
	}
	for _, c := range cases {
		if got := c.host.missing(c.why); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
