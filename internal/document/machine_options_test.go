package document

import "testing"

func TestMachineOptionsOf(t *testing.T) {
	for ad, want := range map[string]string{
		``: "", `[Cmd = "a"]`: "", `[CpuSlack = true; MemorySlack = false]`: "", `[CpuSlack = `: "",
		`[CpuSlack = false; MemorySlack = true]`: "no more CPU time than it asks for, idle memory beyond its request",
		`[WholeCores = true; CoreThreads = 1; OneNumaNode = true]`: "physical cores to itself, 1 hardware threads of each " +
			"core, cores of one NUMA node",
	} {
		got := ""
		if w := MachineOptionsOf(ad); w != nil {
			got = w.Text()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", ad, got, want)
		}
	}
}
