package startd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// portNeeds returns the ports that a claim is to have. The error says why it cannot have
// them, whatever is free: they are none, or the user may not.
func (m *startdHost) portNeeds(schedd string, r *wire.ClaimRequest) (slot.PortNeeds, error) {
	wanted, err := wire.PortRequestsOf(r.GetPorts())
	if err != nil || len(wanted) == 0 {
		return slot.PortNeeds{}, err
	}
	id, err := roost.ParseJobID(r.GetJob(), schedd)
	if err != nil || id.Host != schedd {
		return slot.PortNeeds{}, fmt.Errorf("ports: %w: the request does not say for which job of its schedd "+
			"they are", roost.Invalid)
	}
	for _, needed := range roost.PortCapabilities(wanted) {
		if !slices.Contains(r.GetPortRights(), needed) { // the grant's token covers them
			return slot.PortNeeds{}, fmt.Errorf("ports: %w: %s has not been given %q by the pool",
				roost.PermissionDenied, r.GetOwner(), needed)
		}
	}
	return slot.PortNeeds{Wanted: wanted, Job: id.String(), IsFree: m.isPortFree}, nil
}

// isPortFree reports whether a port can be bound. A server that has it, or a connection
// that somebody opened from it, is in the way; connections that a server before has
// closed are not.
func (m *startdHost) isPortFree(p roost.ClaimPort) bool {
	ip := m.ports.BindIP(p)
	if !ip.IsValid() {
		ip = netip.IPv4Unspecified()
	}
	return canBind(netip.AddrPortFrom(ip, p.Number))
}

func canBind(at netip.AddrPort) bool {
	family := unix.AF_INET6
	address := unix.Sockaddr(&unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) == nil && unix.Bind(fd, address) == nil
}

// lookUpHost finds the addresses of a host.
func lookUpHost(host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	defer cancel()
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// lookUpTimeout bounds how long a startd waits for the address of its own machine.
const lookUpTimeout = 5 * time.Second

// startAttempt has the runner of a claim start an attempt, with the ports that the claim
// has now.
func (l *machineLoop) startAttempt(e slot.StartAttempt) {
	a := l.programs[e.Claim.ID]
	delete(l.programs, e.Claim.ID)
	changed, err := slot.PortsOf(l.table).Recheck(boottime.Now(), e.Claim.ID, l.host.isPortFree)
	if changed {
		l.sendCommand(e.Claim, claim.PortsCmd{Ports: e.Claim.Ports})
		l.sendTo(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Ready{Ready: &wire.ClaimReady{
			Claim: uint64(e.Claim.ID), Placed: l.wirePlacement(e.Claim),
		}}})
	}
	l.sendCommand(e.Claim, claim.StartCmd{ID: e.Attempt, Program: a.GetProgram(), AwaitInput: a.GetHoldForInput(),
		PortError: err})
}

// wirePorts are the ports of a claim for its schedd.
func (m *startdHost) wirePorts(c *slot.Claim) (list []*wire.PortGiven) {
	for _, p := range c.Ports {
		list = append(list, &wire.PortGiven{Name: p.Name, Number: uint32(p.Number), Host: p.Host, Listen: p.Listen,
			Address: m.ports.ClientHost(p)})
	}
	return list
}

// portFile is what a restart must know of ports in quarantine: their times are of one
// boot.
type portFile struct {
	BootID string
	Freed  []slot.FreedPort
}

func (m *startdHost) portFile() string { return filepath.Join(m.dirs().Claims(), "ports") }

// savePorts writes down which ports are in quarantine, if that has changed.
func (l *machineLoop) savePorts() {
	ports := slot.PortsOf(l.table).Table()
	if ports.Version() == l.savedPorts {
		return
	}
	l.savedPorts = ports.Version()
	if err := writePortFile(l.host.portFile(), portFile{l.host.boot, ports.Freed()}); err != nil {
		l.host.log.Error("a restart will not know which ports fell free a moment ago", "err", err)
	}
}

func writePortFile(path string, f portFile) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, filesum.AppendChecksum(text), 0o600)
}

func readPortFile(path string) (f portFile, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
	}
	if err != nil {
		return portFile{}, err
	}
	return f, json.Unmarshal(text, &f)
}

// restorePorts takes in the ports that were in quarantine when the previous startd ended.
// Its reboot, or damage to the file, ends quarantines: names are gone by then, or clients
// find at worst what they would without them.
func (l *machineLoop) restorePorts() {
	saved, err := readPortFile(l.host.portFile())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.host.log.Warn("it is not known which ports fell free a moment ago", "err", err)
		return
	}
	if saved.BootID == l.host.boot {
		slot.PortsOf(l.table).Table().RestoreFreed(boottime.Now(), saved.Freed)
	}
}
