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

// network is a switch and the hosts on it, each in a network namespace of its own, so that nothing of it is to be seen on the machine itself and
// two of them never meet. Namespaces are named after the process that made them, and numbered.
type network struct {
	*testing.T
	prefix string
	spaces []string
	ether  *ether // nil: the hosts are on a bridge of the kernel's
}

const spacePrefix = "roost-test-"

// newNetwork makes the switch, or skips the test where that cannot be. What an earlier test left that was killed is removed.
func newNetwork(t *testing.T) *network {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: several hosts need network namespaces, which only root can make; nothing over the network is tested")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("SKIPPED: there is no ip (install iproute2); nothing over the network is tested")
	}
	n := &network{T: t}
	n.sweep()
	for number := 1; ; number++ { // other tests of this process have networks, too
		n.prefix = fmt.Sprintf("%s%d-%d-", spacePrefix, os.Getpid(), number)
		out, err := exec.Command("ip", "netns", "add", n.space("switch")).CombinedOutput()
		if err == nil {
			break
		}
		if !strings.Contains(string(out), "File exists") {
			t.Skipf("SKIPPED: network namespaces cannot be made here: %s", out)
		}
	}
	t.Cleanup(n.remove)
	n.spaces = append(n.spaces, n.space("switch"))
	n.ip("-n", n.space("switch"), "link", "add", "bridge", "type", "bridge")
	n.ip("-n", n.space("switch"), "link", "set", "bridge", "up")
	return n
}

func (n *network) space(host string) string { return n.prefix + host }

func (n *network) ip(args ...string) {
	n.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// attach makes a host with that address.
func (n *network) attach(host, address string) {
	n.Helper()
	at, sw := n.space(host), n.space("switch")
	n.ip("netns", "add", at)
	n.spaces = append(n.spaces, at)
	if n.ether == nil {
		n.ip("-n", sw, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", at)
		n.ip("-n", sw, "link", "set", host, "master", "bridge", "up")
	} else if err := n.ether.plug(host, at); err != nil {
		n.Fatal(err)
	}
	n.ip("-n", at, "addr", "add", address+"/24", "dev", "eth0")
	n.ip("-n", at, "link", "set", "eth0", "up")
	n.ip("-n", at, "link", "set", "lo", "up")
}

// cut pulls a host's plug out of the switch; mend puts it back.
func (n *network) cut(host string)  { n.ip("-n", n.space("switch"), "link", "set", host, "down") }
func (n *network) mend(host string) { n.ip("-n", n.space("switch"), "link", "set", host, "up") }

// processes lists what runs in a namespace.
func processes(space string) (pids []int) {
	out, _ := exec.Command("ip", "netns", "pids", space).Output()
	for _, field := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// crash ends all that runs on a host, as a loss of power does.
func (n *network) crash(host string) {
	if !killSpace(n.space(host)) {
		n.Errorf("%s: processes cannot be killed", host)
	}
}

// killSpace kills until nothing is left, for what is being killed may fork.
func killSpace(space string) bool {
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		pids := processes(space)
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

func (n *network) remove() {
	for _, space := range n.spaces {
		if !killSpace(space) {
			n.Errorf("%s: processes cannot be killed", space)
		}
		if out, err := exec.Command("ip", "netns", "del", space).CombinedOutput(); err != nil {
			n.Errorf("remove %s: %v\n%s", space, err, out)
		}
	}
}

// sweep removes the namespaces of tests that are not there any more.
func (n *network) sweep() {
	left, _ := filepath.Glob("/run/netns/" + spacePrefix + "*")
	for _, path := range left {
		space := filepath.Base(path)
		owner, _, _ := strings.Cut(strings.TrimPrefix(space, spacePrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || pid == os.Getpid() || syscall.Kill(pid, 0) == nil {
			continue
		}
		killSpace(space)
		exec.Command("ip", "netns", "del", space).Run()
	}
}
