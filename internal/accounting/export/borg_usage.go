package export

import (
	"io"
	"iter"
)

// usageTable returns the table of usage.
func (t *BorgTrace) usageTable() *Table[UsageWindow] {
	type window = UsageWindow
	return &Table[window]{Name: "instance_usage", Columns: []Column[window]{
		{Name: "start_time", value: func(u *window) cell { return integerOf(t.time(u.Begin)) }},
		{Name: "end_time", value: func(u *window) cell { return integerOf(t.time(u.End)) }},
		{Name: "collection_id", value: func(u *window) cell { return integerOf(t.collection(&u.JobKey)) }},
		{Name: "instance_index", value: func(u *window) cell { return integerOf(u.Index) }},
		{Name: "machine_id", value: func(u *window) cell { return integerOf(t.machine(u.Node)) }},
		constant[window]("alloc_collection_id", 0),
		constant[window]("alloc_instance_index", -1),
		constant[window]("collection_type", 0),
		{Name: "average_usage.cpus", value: func(u *window) cell { return t.cpus(u.Sample.CPUMean) }},
		noValue[window]("average_usage.memory"),
		{Name: "maximum_usage.cpus", value: func(u *window) cell { return t.cpus(u.Sample.CPUMax) }},
		{Name: "maximum_usage.memory", value: func(u *window) cell { return t.memory(u.Sample.MemoryMax) }},
		noValue[window]("random_sample_usage.cpus"),
		noValue[window]("random_sample_usage.memory"),
		{Name: "assigned_memory", value: func(u *window) cell { return t.memory(u.Held.Memory) }},
		{Name: "page_cache_memory", value: func(u *window) cell { return t.memory(u.Sample.Cache) }},
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
