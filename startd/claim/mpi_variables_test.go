package claim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestForMPI(t *testing.T) {
	one, two := []string{"n1", "n1"}, []string{"n1", "n2"}
	for _, tt := range []struct {
		lines, given  []string
		with, without []string
	}{
		{one, nil, []string{"OMPI_MCA_plm_rsh_agent=pbs_tmrsh", "HYDRA_LAUNCHER_EXEC=pbs_tmrsh", "HYDRA_LAUNCHER=ssh"},
			[]string{"OMPI_MCA_orte_default_hostfile=/f"}},
		{two, nil, []string{"OMPI_MCA_orte_default_hostfile=/f", "PRTE_MCA_prte_default_hostfile=/f",
			"PRTE_MCA_plm_ssh_agent=pbs_tmrsh"}, nil},
		{two, []string{"OMPI_MCA_plm_rsh_agent=ssh", "HYDRA_LAUNCHER=fork"},
			[]string{"OMPI_MCA_orte_default_hostfile=/f"},
			[]string{"OMPI_MCA_plm_rsh_agent=pbs_tmrsh", "HYDRA_LAUNCHER=ssh", "HYDRA_LAUNCHER_EXEC=pbs_tmrsh"}},
	} {
		got := mpiVariables(tt.lines, "/f", tt.given)
		for _, v := range tt.with {
			if !slices.Contains(got, v) {
				t.Errorf("%v with %v lacks %s: %v", tt.lines, tt.given, v, got)
			}
		}
		for _, v := range tt.without {
			if slices.Contains(got, v) {
				t.Errorf("%v with %v has %s", tt.lines, tt.given, v)
			}
		}
	}
}

// TestNetworkVariables checks that MPI libraries are told of a network, and of the
// interface in it. That is lo for loopback addresses.
func TestNetworkVariables(t *testing.T) {
	sysfs := t.TempDir()
	const all = "OMPI_MCA_btl_tcp_if_include=127.0.0.0/8 OMPI_MCA_oob_tcp_if_include=127.0.0.0/8 " +
		"PRTE_MCA_prte_if_include=127.0.0.0/8 PMIX_MCA_ptl_tcp_if_include=127.0.0.0/8 UCX_NET_DEVICES=lo " +
		"HYDRA_IFACE=lo FI_TCP_IFACE=lo FI_SOCKETS_IFACE=lo MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE=lo " +
		"ROOST_MPI_INTERFACE=lo ROOST_MPI_NETWORK=127.0.0.0/8"
	without := func(names ...string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(all), func(v string) bool {
			return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(v, n+"=") })
		}), " ")
	}
	check := func(network, given, want string) {
		t.Helper()
		if got := networkVariables(network, strings.Fields(given), sysfs); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s with %q: got %q, want %q", network, given, got, want)
		}
	}
	for _, none := range []string{"", "127.0.0.1", "x/8", "203.0.113.0/24"} {
		check(none, "", "")
	}
	check("127.0.0.0/8", "", all)
	check("127.0.0.0/8", "HYDRA_IFACE=eth7 OMPI_MCA_oob_tcp_if_include=a", without("HYDRA_IFACE",
		"OMPI_MCA_oob_tcp_if_include"))
	check("127.0.0.0/8", "OMPI_MCA_btl_tcp_if_exclude=lo PRTE_MCA_prte_if_exclude=x", without(
		"OMPI_MCA_btl_tcp_if_include", "PRTE_MCA_prte_if_include"))

	// An interface with an InfiniBand device, whose second port it is.
	lo := filepath.Join(sysfs, "class/net/lo")
	if err := os.MkdirAll(filepath.Join(lo, "device/infiniband/mlx5_3/ports/2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lo, "dev_port"), []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("127.0.0.0/8", "", strings.Replace(all, "UCX_NET_DEVICES=lo", "UCX_NET_DEVICES=mlx5_3:2,lo", 1))
}
