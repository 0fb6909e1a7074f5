package claim

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// PortAddress is the address of a machine on which its tasks have ports.
type PortAddress struct {
	Host string     // as other nodes know the machine
	IP   netip.Addr // to bind ports on; not valid: all addresses
}

const loopback = "127.0.0.1"

// NewPortAddress returns the address of a machine from that on which its startd is
// reached. A startd that listens on a socket of the file system is reached by nobody
// else, and neither are its tasks.
func NewPortAddress(startd string, lookUp func(host string) ([]netip.Addr, error)) PortAddress {
	host, _, err := net.SplitHostPort(startd)
	if err != nil || strings.HasPrefix(startd, "unix:") {
		host = loopback
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.IsUnspecified() {
			return PortAddress{Host: host}
		}
		return PortAddress{host, ip.Unmap()}
	}
	if all, err := lookUp(host); err == nil && len(all) > 0 {
		return PortAddress{host, all[0].Unmap()}
	}
	return PortAddress{Host: host}
}

// HasOtherClients reports whether other machines can reach ports of the machine's tasks.
func (a PortAddress) HasOtherClients() bool { return a.IP.IsValid() && !a.IP.IsLoopback() }

// ClientHost returns by what clients reach a port of a task, without the number.
func (a PortAddress) ClientHost(p roost.ClaimPort) string {
	if p.Host == roost.PortHostLocal {
		return loopback
	}
	return a.Host
}

// BindIP returns the address that a port is bound on; not valid: all.
func (a PortAddress) BindIP(p roost.ClaimPort) netip.Addr {
	switch p.Host {
	case roost.PortHostLocal:
		return netip.MustParseAddr(loopback)
	case roost.PortHostAny:
		return netip.Addr{}
	}
	return a.IP
}

// portVariables tell a task of its ports: ROOST_PORT_HTTP=20001 and
// ROOST_ADDR_HTTP=n1.example.org:20001.
func (h launcher) portVariables() (list []string) {
	for _, p := range h.file.Ports {
		number := strconv.Itoa(int(p.Number))
		list = append(list, "ROOST_PORT_"+p.EnvName()+"="+number,
			"ROOST_ADDR_"+p.EnvName()+"="+net.JoinHostPort(h.machine.ports.ClientHost(p), number))
	}
	return list
}

// fillPorts puts the numbers of the claim's ports into texts of a program.
func (h launcher) fillPorts(texts []string) []string {
	if len(h.file.Ports) == 0 {
		return texts
	}
	pairs := make([]string, 0, 2*len(h.file.Ports))
	for _, p := range h.file.Ports {
		pairs = append(pairs, roost.PortReference(p.Name), strconv.Itoa(int(p.Number)))
	}
	numbers := strings.NewReplacer(pairs...)
	for i, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			texts[i] = numbers.Replace(text)
		}
	}
	return texts
}

// sockets are the ports that the starter binds for the claim.
func (h launcher) sockets() (list []proto.ListenSocket) {
	for _, p := range h.file.Ports {
		if p.Listen {
			s := proto.ListenSocket{Name: p.Name, Port: uint32(p.Number)}
			if ip := h.machine.ports.BindIP(p); ip.IsValid() {
				s.Address = string(ip.AsSlice())
			}
			list = append(list, s)
		}
	}
	return list
}

// portAddresses returns where this machine reaches the ports of the claim's tasks, by
// name. Those of other tasks are none of its business.
func (h serviceRunner) portAddresses() map[string]netip.AddrPort {
	addresses := make(map[string]netip.AddrPort, len(h.file.Ports))
	for _, p := range h.file.Ports {
		ip := h.machine.ports.BindIP(p)
		if !ip.IsValid() {
			ip = netip.MustParseAddr(loopback)
		}
		addresses[p.Name] = netip.AddrPortFrom(ip, p.Number)
	}
	return addresses
}

// recordPorts writes down which ports the claim has now. Should that not succeed, a
// restart gives the claim the ports that it had before, and looks at them before the next
// attempt.
func (h *Runner) recordPorts(o PortsCmd) {
	h.file.Ports = o.Ports
	if err := writeClaimFile(h.dir, h.file); err != nil {
		h.machine.log.Error("the ports of a claim cannot be written down", "claim", h.id, "err", err)
	}
}
