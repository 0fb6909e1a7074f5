package claim

import (
	"slices"
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
	for _, tt := range []struct {
		network string
		given   []string
		want    []string
	}{
		{"", nil, nil}, {"127.0.0.1", nil, nil}, {"x/8", nil, nil},
		{"127.0.0.0/8", []string{"HYDRA_IFACE=eth7", "OMPI_MCA_oob_tcp_if_include=a"}, []string{
			"OMPI_MCA_btl_tcp_if_include=127.0.0.0/8", "PRTE_MCA_prte_if_include=127.0.0.0/8",
			"PMIX_MCA_ptl_tcp_if_include=127.0.0.0/8", "UCX_NET_DEVICES=lo", "FI_TCP_IFACE=lo", "FI_SOCKETS_IFACE=lo",
			"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE=lo"}},
		{"203.0.113.0/24", nil, []string{"OMPI_MCA_btl_tcp_if_include=203.0.113.0/24",
			"OMPI_MCA_oob_tcp_if_include=203.0.113.0/24", "PRTE_MCA_prte_if_include=203.0.113.0/24",
			"PMIX_MCA_ptl_tcp_if_include=203.0.113.0/24"}},
	} {
		if got := networkVariables(tt.network, tt.given); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %v: got %q, want %q", tt.network, tt.given, got, tt.want)
		}
	}
}
