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
	foreign     []uint16          // those of taken that a program has which is no task
	quarantined map[uint16]string // the job that may have the port again
	// the numbers that the machine gives to ports without numbers of their own; 0: the
	// default ones
	first, last uint16
}

// maxMachinePorts bounds the ports that an ad can list.
const maxMachinePorts = 1024

// readPorts reads the taken ports of the ad. What is no port is ignored: the machine
// itself has the last word.
func (m *Machine) readPorts() {
	taken := portList(m.Ad, roost.AttrPortsTaken)
	list, _ := m.Ad.Eval(roost.AttrPortsQuarantined, nil).Elements(nil)
	ends, _ := m.Ad.Eval(roost.AttrPortRange, nil).Elements(nil)
	if len(taken) == 0 && len(list) == 0 && len(ends) != 2 {
		return
	}
	m.ports = &machinePorts{taken: taken, foreign: portList(m.Ad, roost.AttrPortsForeign),
		quarantined: make(map[uint16]string)}
	if len(ends) == 2 {
		first, _ := ends[0].Int()
		last, _ := ends[1].Int()
		if first > 0 && first <= last && last < 1<<16 {
			m.ports.first, m.ports.last = uint16(first), uint16(last)
		}
	}
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
		if m.ports.gives(port) {
			return port
		}
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

// gives reports whether the machine gives a number to ports without numbers of their own.
func (p *machinePorts) gives(port uint16) bool {
	if p == nil || p.first == 0 {
		return port >= roost.FirstDynamicPort && port <= roost.LastDynamicPort
	}
	return port >= p.first && port <= p.last
}

// portReasons are why a port cannot be had on a machine.
var portReasons = [...]string{"port %d is taken", "port %d is taken by a program that is no task",
	"port %d is of those that the machine gives to ports without a number"}

// portReason says in an explanation why a port cannot be had on a machine.
func (m *Machine) portReason(port uint16) string {
	reason := portReasons[0]
	switch {
	case m.ports.gives(port):
		reason = portReasons[2]
	case m.ports != nil && slices.Contains(m.ports.foreign, port):
		reason = portReasons[1]
	}
	return fmt.Sprintf(reason, port)
}

// takenPortsText says on how many machines which ports are taken.
func (t *waitExplainer) takenPortsText() string {
	var parts []string
	for _, port := range t.request.Class.StaticPorts {
		for _, reason := range portReasons {
			text := fmt.Sprintf(reason, port)
			if n := t.otherReasons[reasonKey{PortTaken, text}]; n > 0 {
				parts = append(parts, fmt.Sprintf("; %s on %d of %d", text, n, t.machines))
			}
		}
	}
	return strings.Join(parts, "")
}
