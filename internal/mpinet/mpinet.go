// Package mpinet has the environment variables that tell MPI libraries on which network
// of a machine they talk. The startd sets them where the cell names a network
// (mpi_network of roost-cell(1)). What starts a rank on another machine renews them
// there: interfaces have other names on it.
package mpinet

import (
	"slices"
	"strings"
)

// The variables by which a machine says what it set the others to.
const (
	InterfaceVariable = "ROOST_MPI_INTERFACE"
	NetworkVariable   = "ROOST_MPI_NETWORK"
)

// variables are those that a machine sets.
var variables = [...]string{"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include",
	"PMIX_MCA_ptl_tcp_if_include", "UCX_NET_DEVICES", "HYDRA_IFACE", "FI_TCP_IFACE", "FI_SOCKETS_IFACE",
	"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE"}

// Renew puts this machine's variables into an environment that came from another one.
// own has those of this machine. What the job has set itself stays. The
// result has no InterfaceVariable and no NetworkVariable.
func Renew(environment, own []string) []string {
	sender := newSetting(environment)
	here := newSetting(own)
	list := make([]string, 0, len(environment))
	wanted := map[string]bool{} // variables that this machine sets
	for _, v := range variables {
		_, given := lookup(environment, v)
		wanted[v] = !given && sender.network == ""
	}
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		if name == InterfaceVariable || name == NetworkVariable {
			continue
		}
		if slices.Contains(variables[:], name) && sender.sets(value) {
			wanted[name] = true
			continue
		}
		list = append(list, e)
	}
	if here.network == "" {
		return list
	}
	for _, v := range variables {
		if value, ok := lookup(own, v); ok && wanted[v] && here.sets(value) {
			list = append(list, v+"="+value)
		}
	}
	return list
}

// setting is what a machine set its variables to; empty if it set none.
type setting struct{ device, network string }

func newSetting(environment []string) (s setting) {
	s.device, _ = lookup(environment, InterfaceVariable)
	s.network, _ = lookup(environment, NetworkVariable)
	return s
}

// sets reports whether a value is one of the machine, and not of the job.
func (s setting) sets(value string) bool {
	return s.network != "" && (value == s.network || value == s.device || strings.HasSuffix(value, ","+s.device))
}

func lookup(environment []string, name string) (value string, ok bool) {
	for _, e := range environment {
		if n, v, _ := strings.Cut(e, "="); n == name {
			value, ok = v, true
		}
	}
	return value, ok
}
