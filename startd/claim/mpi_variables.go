package claim

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/mpinet"
)

// An MPI library starts processes on other machines by ssh unless it is told of something
// else, and finds the machines in a file that it is told of. PBS's own libraries need no
// telling, as they are linked with its task manager; those of distributions are not. So a
// job with a file of nodes finds variables that tell them, unless it came with one of
// that name: "mpirun ./program" then runs on all its machines.

// openMPIVariables are the names that Open MPI has for it. The first are those of
// version 4, the others of version 5 and later (orterun(1) and prterun(1), "MCA
// parameters").
var openMPIVariables = []struct{ agent, direct, attached, hosts string }{
	{"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_rsh_no_tree_spawn", "OMPI_MCA_orte_leave_session_attached",
		"OMPI_MCA_orte_default_hostfile"},
	{"PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_no_tree_spawn", "PRTE_MCA_prte_leave_session_attached",
		"PRTE_MCA_prte_default_hostfile"},
}

// hydraVariables are the names that the launchers of MPICH and Intel have. They find the
// file of nodes by themselves (mpiexec(1) of MPICH, "Environment").
var hydraVariables = []struct {
	launcher, exec string
}{{"HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC"}, {"I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC"}}

// remoteShell starts a command on another machine of the job (pbs_tmrsh(1)).
const remoteShell = "pbs_tmrsh"

// mpiVariables are the variables that tell MPI libraries where a job is, and how to start
// processes there. lines are those of its file of nodes.
func mpiVariables(lines []string, file string, given []string) (list []string) {
	add := func(name, value string) {
		if !setsVariable(given, name+"=") {
			list = append(list, name+"="+value)
		}
	}
	several := slices.ContainsFunc(lines, func(l string) bool { return !strings.EqualFold(l, lines[0]) })
	for _, v := range openMPIVariables {
		add(v.agent, remoteShell)
		add(v.direct, "1")   // it is the script's machine that reaches the others
		add(v.attached, "1") // what its daemon leaves running behind it ends with the command that started it
		if several {         // on one machine it is the processors that count, as they do without a file
			add(v.hosts, file)
		}
	}
	for _, v := range hydraVariables {
		if !setsVariable(given, v.launcher+"=") && !setsVariable(given, v.exec+"=") {
			add(v.launcher, "ssh")
			add(v.exec, remoteShell)
		}
	}
	return list
}

// networkVariables are the variables that have MPI libraries talk on one network of a
// machine that has several. Open MPI takes the network itself, and the others the
// interface that has an address in it. There are none where no interface has one: Open
// MPI would complain at every start. sysfs is where the system describes its devices.
func networkVariables(network string, given []string, sysfs string) (list []string) {
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return nil
	}
	name := interfaceIn(prefix)
	if name == "" {
		return nil
	}
	for _, v := range [...]string{"OMPI_MCA_btl_tcp_if_", "OMPI_MCA_oob_tcp_if_", "PRTE_MCA_prte_if_",
		"PMIX_MCA_ptl_tcp_if_"} { // Open MPI takes one of the two only
		if !setsVariable(given, v+"include=") && !setsVariable(given, v+"exclude=") {
			list = append(list, v+"include="+prefix.String())
		}
	}
	add := func(variable, value string) {
		if !setsVariable(given, variable+"=") {
			list = append(list, variable+"="+value)
		}
	}
	add("UCX_NET_DEVICES", rdmaDevices(sysfs, name)+name)
	for _, v := range [...]string{"HYDRA_IFACE", "FI_TCP_IFACE", "FI_SOCKETS_IFACE",
		"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE"} {
		add(v, name)
	}
	return append(list, mpinet.InterfaceVariable+"="+name, mpinet.NetworkVariable+"="+prefix.String())
}

// rdmaDevices are the InfiniBand devices behind a network interface as UCX names them,
// as in "mlx5_0:1,". UCX uses no RDMA if it is told of the interface alone (UCX manual,
// UCX_NET_DEVICES).
func rdmaDevices(sysfs, name string) string {
	device := filepath.Join(sysfs, "class/net", name, "device/infiniband")
	entries, err := os.ReadDir(device)
	if err != nil {
		return ""
	}
	port := 1
	if text, err := os.ReadFile(filepath.Join(sysfs, "class/net", name, "dev_port")); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n >= 0 {
			port += n
		}
	}
	var b strings.Builder
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(device, e.Name(), "ports", strconv.Itoa(port))); err == nil {
			fmt.Fprintf(&b, "%s:%d,", e.Name(), port)
		}
	}
	return b.String()
}

// interfaceIn is the network interface of this machine that has an address in a network.
// It is empty if none does that is up.
func interfaceIn(prefix netip.Prefix) string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addresses {
			if own, err := netip.ParsePrefix(a.String()); err == nil && prefix.Contains(own.Addr().Unmap()) {
				return i.Name
			}
		}
	}
	return ""
}
