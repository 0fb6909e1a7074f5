package enroll

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// The ports of a pool, by default. If its authority listens on another port, they are
// relative to that.
const (
	authorityPort        = 9700
	collectorPort        = 1 // the port after the authority's; the others are relative to it, too
	negotiatorPort       = 2
	startdPort           = 3
	checkpointServerPort = 4
	scheddPort           = 5
)

// SplitHostPort reads HOST[:PORT]. The default port is the authority's.
func SplitHostPort(text string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		host, digits = text, strconv.Itoa(authorityPort)
		if ip := net.ParseIP(text); ip == nil {
			if _, _, again := net.SplitHostPort(text + ":1"); again != nil {
				return "", 0, fmt.Errorf("address %q: %w: write it as HOST or HOST:PORT", text, roost.Usage)
			}
		}
	}
	port, err = strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535-scheddPort || host == "" {
		return "", 0, fmt.Errorf("address %q: %w: write it as HOST or HOST:PORT, with a port from 1 to %d", text,
			roost.Usage, 65535-scheddPort)
	}
	return host, port, nil
}

func joinHostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// ownAddress returns the address by which others can probably reach this machine: the
// first that is not loopback.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("addresses of this machine: %w: %w", roost.Unavailable, err)
	}
	var six string
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP.String(), nil
		}
		if six == "" {
			six = n.IP.String()
		}
	}
	if six == "" {
		return "", fmt.Errorf("address: %w: this machine has none that others reach: connect it to a network, "+
			"or name one with --address", roost.Unavailable)
	}
	return six, nil
}

// checkPortFree checks that a daemon can listen on some ports, before anything depends on
// them.
func checkPortFree(host string, ports ...int) error {
	for _, port := range ports {
		l, err := net.Listen("tcp", joinHostPort(host, port))
		switch {
		case errors.Is(err, unix.EADDRINUSE):
			return fmt.Errorf("port %d: %w: another program listens there: stop it, or choose another "+
				"with --address %s", port, roost.Conflict, joinHostPort(host, port+10))
		case errors.Is(err, unix.EADDRNOTAVAIL):
			return fmt.Errorf("address %s: %w: it is none of this machine's: name one that is, with --address", host,
				roost.Usage)
		case errors.Is(err, unix.EACCES):
			return fmt.Errorf("port %d: %w: only root may use it: choose one above 1023 with --address", port,
				roost.PermissionDenied)
		case err != nil:
			return fmt.Errorf("address %s: %w: %w", joinHostPort(host, port), roost.Usage, err)
		}
		l.Close()
	}
	return nil
}
