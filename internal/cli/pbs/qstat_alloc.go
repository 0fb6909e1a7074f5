package pbs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// addAllocs adds what is inside an alloc set, or inside which one a job is. PBS knows
// nothing of the kind.
func (j *pbsJob) addAllocs(list *attributeList) {
	if a := j.GetAlloc(); a != nil {
		inside := a.GetInside().Vector()
		list.add("alloc", "True")
		list.add("alloc_open", fmt.Sprint(a.GetOpen()))
		list.add("alloc_tasks", fmt.Sprint(a.GetTasks()))
		*list = append(*list,
			qstat.ObjectAttribute{Name: "alloc_inside", Resource: "mem", Value: kilobytes(inside.Memory)},
			qstat.ObjectAttribute{Name: "alloc_inside", Resource: "ncpus", Value: inside.CPU.String()})
		list.add("alloc_jobs", strings.Join(a.GetJobs(), ","))
		list.add("alloc_users", strings.Join(a.GetUsers(), ","))
	}
	if in := j.GetInside(); in != nil {
		list.add("in_alloc", cmp.Or(in.GetAlloc(), in.GetSet()))
	}
}
