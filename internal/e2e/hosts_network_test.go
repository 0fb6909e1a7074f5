package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testNetwork is a switch and its hosts, each in a network namespace of its own. The
// machine itself sees nothing of it, and two networks are separate. Namespaces are
// numbered and named after the process that made them.
type testNetwork struct {
	*testing.T
	prefix        string
	spaces        []string
	virtualSwitch *virtualSwitch // nil: the hosts are on a kernel bridge
}

const namespacePrefix = "roost-test-"

// newNetwork creates the switch, or skips the test where that is not possible. It removes
// what a killed test has left.
func newNetwork(t *testing.T) *testNetwork {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: several hosts need network namespaces, which only root can make; nothing over the " +
			"network is tested")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("SKIPPED: there is no ip (install iproute2); nothing over the network is tested")
	}
	n := &testNetwork{T: t}
	n.removeStale()
	for number := 1; ; number++ { // other tests of this process have networks, too
		n.prefix = fmt.Sprintf("%s%d-%d-", namespacePrefix, os.Getpid(), number)
		out, err := exec.Command("ip", "netns", "add", n.namespaceName("switch")).CombinedOutput()
		if err == nil {
			break
		}
		if !strings.Contains(string(out), "File exists") {
			t.Skipf("SKIPPED: network namespaces cannot be made here: %s", out)
		}
	}
	t.Cleanup(n.removeNetwork)
	n.spaces = append(n.spaces, n.namespaceName("switch"))
	n.runIP("-n", n.namespaceName("switch"), "link", "add", "bridge", "type", "bridge")
	n.runIP("-n", n.namespaceName("switch"), "link", "set", "bridge", "up")
	return n
}

func (n *testNetwork) namespaceName(host string) string { return n.prefix + host }

func (n *testNetwork) runIP(args ...string) {
	n.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// attachHost creates a host with an address.
func (n *testNetwork) attachHost(host, address string) {
	n.Helper()
	at, sw := n.namespaceName(host), n.namespaceName("switch")
	n.runIP("netns", "add", at)
	n.spaces = append(n.spaces, at)
	if n.virtualSwitch == nil {
		n.runIP("-n", sw, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", at)
		n.runIP("-n", sw, "link", "set", host, "master", "bridge", "up")
	} else if err := n.virtualSwitch.addPort(host, at); err != nil {
		n.Fatal(err)
	}
	n.runIP("-n", at, "addr", "add", address+"/24", "dev", "eth0")
	n.runIP("-n", at, "link", "set", "eth0", "up")
	n.runIP("-n", at, "link", "set", "lo", "up")
}

// unplug takes down a host's link at the switch; replug restores it.
func (n *testNetwork) unplug(host string) {
	n.runIP("-n", n.namespaceName("switch"), "link", "set", host, "down")
}
func (n *testNetwork) replug(host string) {
	n.runIP("-n", n.namespaceName("switch"), "link", "set", host, "up")
}

// namespaceProcesses lists the processes in a namespace.
func namespaceProcesses(space string) (pids []int) {
	out, _ := exec.Command("ip", "netns", "pids", space).Output()
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// crashHost kills everything on a host, as a power loss does.
func (n *testNetwork) crashHost(host string) {
	if !killNamespace(n.namespaceName(host)) {
		n.Errorf("%s: processes cannot be killed", host)
	}
}

// killNamespace kills until nothing is left, because a process may fork while it is
// killed.
func killNamespace(space string) bool {
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		pids := namespaceProcesses(space)
		if len(pids) == 0 {
			return true
		}
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-tick.C:
		case <-late.C:
			return false
		}
	}
}

func (n *testNetwork) removeNetwork() {
	for _, space := range n.spaces {
		if !killNamespace(space) {
			n.Errorf("%s: processes cannot be killed", space)
		}
		if out, err := exec.Command("ip", "netns", "del", space).CombinedOutput(); err != nil {
			n.Errorf("remove %s: %v\n%s", space, err, out)
		}
	}
}

// removeStale removes the namespaces of tests that no longer run.
func (n *testNetwork) removeStale() {
	left, _ := filepath.Glob("/run/netns/" + namespacePrefix + "*")
	for _, path := range left {
		space := filepath.Base(path)
		owner, _, _ := strings.Cut(strings.TrimPrefix(space, namespacePrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || pid == os.Getpid() || syscall.Kill(pid, 0) == nil {
			continue
		}
		killNamespace(space)
		exec.Command("ip", "netns", "del", space).Run()
	}
}
