package export

// pbsAttribute is an attribute of records of the accounting log.
type pbsAttribute struct {
	Name  string
	About string // one line for the manual
}

// pbsAttributes returns the attributes that records can have, in their order.
func pbsAttributes() []pbsAttribute {
	return []pbsAttribute{
		{"user", "owner"},
		{"group", "Unix group on the submit node, or its number"},
		{"account", "project that the job is charged to, or else its group of the fair share"},
		{"project", "group of the fair share"},
		{"jobname", "name of the job"},
		{"queue", "queue"},
		{"ctime", "submission"},
		{"qtime", "submission"},
		{"etime", "since when it could run"},
		{"start", "start of the attempt"},
		{"exec_host", "node, /0, and * with the CPUs that it held if there are several"},
		{"exec_vnode", "node and what it held, in parentheses"},
		{"Resource_List.mem", "memory that one task asked for"},
		{"Resource_List.ncpus", "CPUs that one task asked for, rounded up to whole ones"},
		{"Resource_List.ngpus", "GPUs that one task asked for"},
		{"Resource_List.nodect", "always 1"},
		{"Resource_List.place", "always pack"},
		{"Resource_List.select", "the same as one chunk"},
		{"Resource_List.walltime", "wall time that one task asked for"},
		{"session", "always 0"},
		{"end", "end of the attempt"},
		{"Exit_status", "exit code, 256 and the signal, or a negative number as in PBS"},
		{"resources_used.cput", "CPU time"},
		{"resources_used.mem", "memory at its highest"},
		{"resources_used.ncpus", "CPUs that it held, rounded up to whole ones"},
		{"resources_used.walltime", "time that it ran, without time for which it was suspended"},
		{"run_count", "number of the execution of the task, from 1"},
		{"requester", "who asked for it, and the submit node"},
	}
}
