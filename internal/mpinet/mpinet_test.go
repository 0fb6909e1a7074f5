package mpinet

import (
	"slices"
	"strings"
	"testing"
)

// TestRenew has the variables of one machine become those of another one.
func TestRenew(t *testing.T) {
	const a = "ROOST_MPI_INTERFACE=eth0 ROOST_MPI_NETWORK=10.1.0.0/16 "
	const b = "ROOST_MPI_INTERFACE=ib3 ROOST_MPI_NETWORK=10.1.0.0/16 "
	for _, tt := range []struct{ name, sender, here, want string }{
		{"no network", "A=1 HYDRA_IFACE=eth5", "B=2", "A=1 HYDRA_IFACE=eth5"},
		{"another name", a + "A=1 HYDRA_IFACE=eth0 UCX_NET_DEVICES=eth0 OMPI_MCA_btl_tcp_if_include=10.1.0.0/16",
			b + "HYDRA_IFACE=ib3 UCX_NET_DEVICES=mlx5_0:1,ib3 OMPI_MCA_btl_tcp_if_include=10.1.0.0/16",
			"A=1 OMPI_MCA_btl_tcp_if_include=10.1.0.0/16 UCX_NET_DEVICES=mlx5_0:1,ib3 HYDRA_IFACE=ib3"},
		{"of the job", a + "HYDRA_IFACE=eth7 FI_TCP_IFACE=eth0", b + "HYDRA_IFACE=ib3 FI_TCP_IFACE=ib3",
			"HYDRA_IFACE=eth7 FI_TCP_IFACE=ib3"},
		{"taken away by the job", a, b + "HYDRA_IFACE=ib3", ""},
		{"none here", a + "HYDRA_IFACE=eth0 UCX_NET_DEVICES=mlx5_1:1,eth0 PRTE_MCA_prte_if_include=10.1.0.0/16", "",
			""},
		{"none there", "A=1", b + "HYDRA_IFACE=ib3", "A=1 HYDRA_IFACE=ib3"},
	} {
		got := Renew(strings.Fields(tt.sender), strings.Fields(tt.here))
		if want := strings.Fields(tt.want); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, want)
		}
	}
}
