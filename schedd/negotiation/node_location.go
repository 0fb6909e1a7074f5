package negotiation

import (
	"strings"

	"github.com/roost-batch/roost/internal/config"
)

// formatLocation writes where a machine is, for the dispatcher and the log. That is its
// address, preceded by its node if the machine has another name, as in
// "n1@10.0.0.1:9703". The node comes from the machine's ad, and the collector has
// compared it with the certificate.
func formatLocation(machine, host, address string) string {
	if named, _ := ParseLocation(machine, address); named == machine && (host == "" || host == machine) {
		return address
	}
	if host == "" {
		host = machine
	}
	return host + "@" + address
}

// ParseLocation is the node of a machine, whose certificate it has to show, and the
// address where it is. No address begins with the name of a node and "@".
func ParseLocation(machine, text string) (host, address string) {
	if host, address, ok := strings.Cut(text, "@"); ok && config.IsValidName(host) {
		return host, address
	}
	return machine, text
}
