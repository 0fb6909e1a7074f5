package records

// jobDefaults are the members of Slurm's JSON that say nothing about jobs of Roost.
// Programs that read all members find them, each with its type.
const jobDefaults = `"admin_comment":"","association_id":0,"batch_features":"",` +
	`"billable_tres":{"set":false,"infinite":false,"number":0},"burst_buffer":"","burst_buffer_state":"",` +
	`"cluster_features":"","container":"","container_id":"","contiguous":false,"core_spec":0,` +
	`"cores_per_socket":` + jsonUnset + `,"cpu_frequency_governor":` + jsonUnset + `,"cpu_frequency_maximum":` +
	jsonUnset + `,"cpu_frequency_minimum":` + jsonUnset + `,"cpus_per_tres":"","cron":"","deadline":` + jsonZero +
	`,"delay_boot":` + jsonZero + `,"derived_exit_code":{"status":["SUCCESS"],"return_code":` + jsonZero +
	`,"signal":{"id":` + jsonUnset + `,"name":""}},"extra":"","failed_node":"","federation_origin":"",` +
	`"federation_siblings_active":"","federation_siblings_viable":"","flags":[],"gres_detail":[],"het_job_id_set":"",` +
	`"het_job_offset":` + jsonZero + `,"job_size_str":[],"last_sched_evaluation":` + jsonZero + `,"mail_type":[],` +
	`"mail_user":"","max_cpus":` + jsonZero + `,"max_nodes":` + jsonZero + `,"maximum_switch_wait_time":0,` +
	`"mcs_label":"","memory_per_tres":"","minimum_tmp_disk_per_node":` + jsonZero + `,"network":"",` +
	`"power":{"flags":[]},"pre_sus_time":` + jsonZero + `,"preempt_time":` + jsonZero + `,"preemptable_time":` +
	jsonZero + `,"prefer":"","priority_by_partition":[],"profile":["NOT_SET"],"reboot":false,"required_switches":0,` +
	`"resize_time":` + jsonZero + `,"scheduled_nodes":"","selinux_context":"","shared":[],"sockets_per_board":0,` +
	`"sockets_per_node":` + jsonUnset + `,"state_description":"","system_comment":"","tasks_per_board":` + jsonZero +
	`,"tasks_per_core":` + jsonInfinite + `,"tasks_per_socket":` + jsonInfinite + `,"tasks_per_tres":` + jsonZero +
	`,"thread_spec":32766,"threads_per_core":` + jsonUnset + `,"time_minimum":` + jsonZero + `,"tres_bind":"",` +
	`"tres_freq":"","tres_per_job":"","tres_per_socket":"","tres_per_task":"","wckey":""`

// Numbers in that JSON.
const (
	jsonUnset    = `{"set":false,"infinite":false,"number":0}`
	jsonZero     = `{"set":true,"infinite":false,"number":0}`
	jsonInfinite = `{"set":false,"infinite":true,"number":0}`
)
