package roost

import (
	"fmt"
	"strings"
)

// PortRequest is a network port that each task of a job needs on its machine.
type PortRequest struct {
	Name   string // as a service name of RFC 6335, in lower case: "http"
	Static uint16 `json:",omitempty"` // the number that it has on every machine; 0: a free one of the machine's range
	Listen bool   `json:",omitempty"` // the machine binds the port, and passes the socket to the task
	// the addresses of the machine that the port is for: PortHostMachine, PortHostAny or
	// PortHostLocal
	Host string `json:",omitempty"`
}

// ClaimPort is a port that a claim has on its machine.
type ClaimPort struct {
	PortRequest
	Number uint16
}

// The values of PortRequest.Host.
const (
	PortHostMachine = ""          // the address by which other nodes reach the machine
	PortHostAny     = "*"         // all its addresses
	PortHostLocal   = "localhost" // the loopback address: only processes on the machine reach it
)

// Bounds on ports.
const (
	MaxPorts         = 64 // of a task
	maxPortName      = 15 // bytes of a name (RFC 6335, section 5.1)
	UnprivilegedPort = 1024
	// the default range of ports that have no number of their own
	FirstDynamicPort = 20000
	LastDynamicPort  = 32767
)

// CheckPortName returns what is wrong with the name of a port, nil if nothing is. Names
// are service names of RFC 6335 in lower case, and begin with a letter.
func CheckPortName(name string) error {
	for i := range len(name) {
		c := name[i]
		letter, other := c >= 'a' && c <= 'z', c >= '0' && c <= '9' || c == '-'
		if !letter && (i == 0 || !other) {
			return fmt.Errorf("%w: a name has small letters, digits and -, and begins with a letter", Invalid)
		}
	}
	switch {
	case name == "" || len(name) > maxPortName:
		return fmt.Errorf("%w: a name has from 1 to %d characters", Invalid, maxPortName)
	case strings.HasSuffix(name, "-") || strings.Contains(name, "--"):
		return fmt.Errorf("%w: a hyphen stands between letters and digits", Invalid)
	}
	return nil
}

// Check returns what is wrong with a request for a port.
func (p PortRequest) Check() error {
	if err := CheckPortName(p.Name); err != nil {
		return fmt.Errorf("port %.40q: %w", p.Name, err)
	}
	switch p.Host {
	case PortHostMachine, PortHostAny, PortHostLocal:
		return nil
	}
	return fmt.Errorf("port %s: %w: the host %.40q is neither %q nor %q", p.Name, Invalid, p.Host, PortHostAny,
		PortHostLocal)
}

// CheckPorts returns what is wrong with the ports of a job.
func CheckPorts(list []PortRequest) error {
	if len(list) > MaxPorts {
		return fmt.Errorf("%w: there are %d ports, and a task has at most %d", Invalid, len(list), MaxPorts)
	}
	names, numbers := make(map[string]bool, len(list)), make(map[uint16]string, len(list))
	for _, p := range list {
		if err := p.Check(); err != nil {
			return err
		}
		if names[p.Name] {
			return fmt.Errorf("port %s: %w: the name is used twice", p.Name, Invalid)
		}
		if other, twice := numbers[p.Static]; twice && p.Static != 0 {
			return fmt.Errorf("port %s: %w: port %s has the number %d, too", p.Name, Invalid, other, p.Static)
		}
		names[p.Name], numbers[p.Static] = true, p.Name
	}
	return nil
}

// EnvName returns the end of the names of the port's variables. In ROOST_PORT_HTTP it is
// HTTP.
func (p PortRequest) EnvName() string {
	return strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_"))
}

// PortReference returns what stands for a port's number in a program on its way to a
// machine. Arguments and the environment may have it. No text of a user can contain it,
// because it has NULs.
func PortReference(name string) string { return "\x00port." + name + "\x00" }

// Capabilities over ports, which administrators give to users.
const (
	CapabilityStaticPorts     = "static-ports"     // ports on all addresses of a machine
	CapabilityPrivilegedPorts = "privileged-ports" // numbers below UnprivilegedPort
)

// PortCapabilities lists the capabilities that a user needs for ports, sorted.
func PortCapabilities(list []PortRequest) (needed []string) {
	var privileged, static bool
	for _, p := range list {
		privileged = privileged || p.Static > 0 && p.Static < UnprivilegedPort
		static = static || p.Host == PortHostAny
	}
	if privileged {
		needed = append(needed, CapabilityPrivilegedPorts)
	}
	if static {
		needed = append(needed, CapabilityStaticPorts)
	}
	return needed
}
