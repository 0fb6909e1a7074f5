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
