package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// A port with a number of its own has one holder on each machine. So a request for such
// ports fits only on machines where none of them is taken: by a claim that the ad shows,
// by a pending grant, or by a grant of this plan; or is in quarantine for another job.
// Ports without numbers are not matched: a machine has thousands of them.

// machinePorts are the ports of a machine that have numbers of their own and are taken.
type machinePorts struct {
	taken       []uint16          // sorted
	quarantined map[uint16]string // the job that may have the port again
}

// maxMachinePorts bounds the ports that an ad can list.
const maxMachinePorts = 1024

// readPorts reads the taken ports of the ad. What is no port is ignored: the machine
// itself has the last word.
func (m *Machine) readPorts() {
	taken := portList(m.Ad, roost.AttrPortsTaken)
	list, _ := m.Ad.Eval(roost.AttrPortsQuarantined, nil).Elements(nil)
	if len(taken) == 0 && len(list) == 0 {
		return
	}
	m.ports = &machinePorts{taken: taken, quarantined: make(map[uint16]string)}
	for _, v := range list[:min(len(list), maxMachinePorts)] {
		if one, ok := v.Ad(); ok {
			if n, ok := one.Int(roost.AttrPortStatic); ok && n > 0 && n < 1<<16 {
				m.ports.quarantined[uint16(n)] = stringAttr(one, roost.AttrJob)
			}
		}
	}
}

// portList reads a list of port numbers, sorted.
func portList(ad *classad.Ad, name string) (ports []uint16) {
	list, _ := ad.Eval(name, nil).Elements(nil)
	for _, v := range list[:min(len(list), maxMachinePorts)] {
		if n, ok := v.Int(); ok && n > 0 && n < 1<<16 {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// portConflict returns a port of a class that cannot be had on a machine now; 0 for
// none.
func (p *negotiationCycle) portConflict(c *RequestClass, at int) uint16 {
	if len(c.StaticPorts) == 0 {
		return 0
	}
	m := p.Machines[at]
	for _, port := range c.StaticPorts {
		if m.ports != nil {
			if _, taken := slices.BinarySearch(m.ports.taken, port); taken {
				return port
			}
			if job, quarantined := m.ports.quarantined[port]; quarantined && job != c.Job {
				return port
			}
		}
		isPending := func(g PendingGrant) bool { return slices.Contains(g.Ports, port) }
		if slices.Contains(p.grantedPorts(m), port) || slices.ContainsFunc(p.Pending[m.Name], isPending) {
			return port
		}
	}
	return 0
}

// planPorts are the ports that the grants of a plan take, by machine.
type planPorts struct {
	byMachine map[*Machine][]uint16
	counted   int // grants
}

// grantedPorts returns the ports of a machine that grants of this plan take. Only plans
// with requests for ports count them.
func (p *negotiationCycle) grantedPorts(m *Machine) []uint16 {
	g := &p.ports
	for ; g.counted < len(p.result.Grants); g.counted++ {
		grant := &p.result.Grants[g.counted]
		if list := grant.Request.Class.StaticPorts; len(list) > 0 {
			if g.byMachine == nil {
				g.byMachine = make(map[*Machine][]uint16)
			}
			g.byMachine[grant.Machine] = append(g.byMachine[grant.Machine], list...)
		}
	}
	return g.byMachine[m]
}

// takenPortText says in an explanation that a port is taken.
func takenPortText(port uint16) string { return fmt.Sprintf("port %d is taken", port) }

// takenPortsText says on how many machines which ports are taken.
func (t *waitExplainer) takenPortsText() string {
	var parts []string
	for _, port := range t.request.Class.StaticPorts {
		if n := t.otherReasons[reasonKey{PortTaken, takenPortText(port)}]; n > 0 {
			parts = append(parts, fmt.Sprintf("; %s on %d of %d", takenPortText(port), n, t.machines))
		}
	}
	return strings.Join(parts, "")
}
