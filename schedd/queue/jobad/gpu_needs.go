package jobad

import "github.com/roost-batch/roost"

// GPUNeed is what one task of a job asks for.
type GPUNeed struct {
	Task      int
	Resources roost.Resources // GPUs and GPUMemory alone
}

// GPUs lists each different need for GPUs once, with the first task that has it. Tasks
// without GPUs have none. What makes no sense is left out: a submission is refused for
// it.
func (s *SubmitSpec) GPUs() (needs []GPUNeed) {
	r := adReader{ad: s.Ad}
	whole := JobSpec{}
	whole.Resources.GPUs, whole.Resources.GPUMemory = r.gpus()
	var columns []TaskColumn
	for _, c := range s.Columns {
		if (c.Name == roost.AttrRequestGpus || c.Name == roost.AttrRequestGpuMem) && len(c.Values) == s.Count {
			columns = append(columns, c)
		}
	}
	seen := map[roost.Resources]bool{{}: true}
	tasks := 1
	if len(columns) > 0 {
		tasks = s.Count
	}
	for i := range tasks {
		p := whole
		for _, c := range columns {
			if p.OverrideAttr(c.Name, c.Values[i]) != nil {
				p.Resources = roost.Resources{}
			}
		}
		if p.Resources.GPUs == 0 {
			p.Resources.GPUMemory = 0
		}
		if !seen[p.Resources] {
			seen[p.Resources] = true
			needs = append(needs, GPUNeed{i, p.Resources})
		}
	}
	return needs
}

// gpus reads how many GPUs are asked for and how much memory of each. Memory without a
// number means one GPU.
func (r *adReader) gpus() (n int, memory roost.Bytes) {
	memory = roost.Bytes(r.number(roost.AttrRequestGpuMem, 0, 0, 1<<32)) * roost.MiB
	n = int(r.number(roost.AttrRequestGpus, 0, 0, 1<<16))
	if memory > 0 && !r.has(roost.AttrRequestGpus) {
		n = 1
	}
	return n, memory
}
