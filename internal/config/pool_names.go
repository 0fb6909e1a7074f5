package config

import (
	"net"
	"strings"

	"github.com/roost-batch/roost/internal/config/pooldir"
)

// Names of package pooldir, for what reads node files, too.
const (
	SocketName   = pooldir.SocketName
	GuardSocket  = pooldir.GuardSocket
	SystemRunDir = pooldir.SystemRunDir

	UpNodeFileHeader = pooldir.UpNodeFileHeader
)

// PoolDir returns the directory of a personal pool, see pooldir.PoolDir.
func PoolDir(dir string, getenv func(string) string) (string, error) {
	return pooldir.PoolDir(dir, getenv)
}

// HostName returns this host's name as that of a node, see pooldir.HostName.
func HostName() string { return pooldir.HostName() }

// IsValidName reports whether s can be the name of a node, see pooldir.IsValidName.
func IsValidName(s string) bool { return pooldir.IsValidName(s) }

// AdvertisedAddress returns the address that a daemon advertises out of its listening
// addresses. It is the first that other hosts can reach, or else the first.
func AdvertisedAddress(listen []string) string {
	for _, addr := range listen {
		if _, _, err := net.SplitHostPort(addr); err == nil && !isLocalAddress(addr) && !isRelayAddress(addr) {
			return addr
		}
	}
	for _, addr := range listen {
		if isRelayAddress(addr) {
			return addr
		}
	}
	if len(listen) == 0 {
		return ""
	}
	return listen[0]
}

// isLocalAddress reports whether addr is a unix socket.
func isLocalAddress(addr string) bool { return strings.HasPrefix(addr, "unix:") }
