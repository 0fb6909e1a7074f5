package export

import (
	"io"
	"iter"
)

// usageTable returns the table of usage.
func (t *BorgTrace) usageTable() *Table[UsageWindow] {
	type window = UsageWindow
	return &Table[window]{Name: "instance_usage", Columns: []Column[window]{
		{Name: "start_time", About: "begin of the window, as time",
			value: func(u *window) cell { return integerOf(t.time(u.Begin)) }},
		{Name: "end_time", About: "end of the window, as time",
			value: func(u *window) cell { return integerOf(t.time(u.End)) }},
		{Name: "collection_id", About: "number of the job, from a hash of its id",
			value: func(u *window) cell { return integerOf(t.collection(&u.JobKey)) }},
		{Name: "instance_index", About: "index of the task, from 0",
			value: func(u *window) cell { return integerOf(u.Index) }},
		{Name: "machine_id", About: "number of the machine, from a hash of its name; 0: none",
			value: func(u *window) cell { return integerOf(t.machine(u.Node)) }},
		constant[window]("alloc_collection_id", "0: in no alloc set", 0),
		constant[window]("alloc_instance_index", "-1: in no alloc set", -1),
		constant[window]("collection_type", "0: a job", 0),
		{Name: "average_usage.cpus", About: "CPUs used on average",
			value: func(u *window) cell { return t.cpus(u.Sample.CPUMean) }},
		noValue[window]("average_usage.memory"),
		{Name: "maximum_usage.cpus", About: "CPUs used at most",
			value: func(u *window) cell { return t.cpus(u.Sample.CPUMax) }},
		{Name: "maximum_usage.memory", About: "memory at its highest",
			value: func(u *window) cell { return t.memory(u.Sample.MemoryMax) }},
		noValue[window]("random_sample_usage.cpus"),
		noValue[window]("random_sample_usage.memory"),
		{Name: "assigned_memory", About: "memory that it held",
			value: func(u *window) cell { return t.memory(u.Held.Memory) }},
		{Name: "page_cache_memory", About: "page cache of its files",
			value: func(u *window) cell { return t.memory(u.Sample.Cache) }},
		noValue[window]("cycles_per_instruction"),
		noValue[window]("memory_accesses_per_instruction"),
		noValue[window]("sample_rate"),
		noValue[window]("cpu_usage_distribution"),
		noValue[window]("tail_cpu_usage_distribution"),
	}}
}

// WriteUsage writes instance_usage. What Roost does not measure (percentiles, a random
// second, cycles) is empty.
func (t *BorgTrace) WriteUsage(w io.Writer, windows iter.Seq2[UsageWindow, error]) (int64, error) {
	return writeBorg(t.usageTable(), w, windows)
}
