package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/config"
)

const portsCheck = "ports"

// examinePorts compares the ports that this node gives to tasks with those that the
// kernel gives to outgoing connections. settings is the directory of the kernel's.
func examinePorts(n *config.Node, settings string) (findings []checkResult) {
	if n == nil || len(n.Startds) == 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(settings, "ip_local_port_range"))
	if err != nil {
		return []checkResult{{portsCheck, levelWarning,
			"it is not known from which ports connections go out: " + err.Error(), "ask as root"}}
	}
	var out config.PortRange
	if _, err := fmt.Sscan(string(text), &out.First, &out.Last); err != nil {
		return []checkResult{{portsCheck, levelWarning, fmt.Sprintf("ip_local_port_range has %q: %v", text, err),
			"see ip(7)"}}
	}
	// without the file nothing is reserved
	reserved, _ := os.ReadFile(filepath.Join(settings, "ip_local_reserved_ports"))
	seen := map[config.PortRange]bool{}
	for _, d := range n.Startds {
		r := d.Ports.OrDefault()
		if seen[r] {
			continue
		}
		seen[r] = true
		f := checkPortRange(r, out, string(reserved))
		if f.Level == levelError && n.TLS == nil { // a pool of one host, perhaps of a user who is not root
			f.Level = levelWarning
		}
		findings = append(findings, f)
	}
	return findings
}

// checkPortRange judges one range.
func checkPortRange(r, out config.PortRange, reserved string) checkResult {
	first, last := max(r.First, out.First), min(r.Last, out.Last)
	if first > last {
		return checkResult{portsCheck, levelOK,
			fmt.Sprintf("tasks have ports of %s, and connections go out from %s", r, out), ""}
	}
	shared := config.PortRange{First: first, Last: last}
	if isReserved(reserved, shared) {
		return checkResult{portsCheck, levelOK,
			fmt.Sprintf("tasks have ports of %s, and %s are reserved for them", r, shared), ""}
	}
	return checkResult{portsCheck, levelError, fmt.Sprintf("tasks have ports of %s, and from %s of these outgoing "+
		"connections of all programs go out: a task may find its port taken", r, shared),
		fmt.Sprintf("sysctl -w net.ipv4.ip_local_reserved_ports=%s and write it into /etc/sysctl.d, or choose another "+
			"range with ports in the startd block", strings.Trim(strings.TrimSpace(reserved)+","+r.String(), ","))}
}

// isReserved reports whether the kernel's list, as 8080,9000-9100, has a whole range.
func isReserved(list string, r config.PortRange) bool {
	has := make(map[uint16]bool)
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, fromErr := strconv.ParseUint(first, 10, 16)
		to, toErr := strconv.ParseUint(last, 10, 16)
		if fromErr != nil || toErr != nil {
			continue
		}
		for number := from; number <= to; number++ {
			has[uint16(number)] = true
		}
	}
	for number := int(r.First); number <= int(r.Last); number++ {
		if !has[uint16(number)] {
			return false
		}
	}
	return true
}
