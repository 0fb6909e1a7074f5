package translate

import (
	"slices"
	"strings"
)

// unsupportedCondorCommands returns the commands without a counterpart, with reasons.
// Commands that need none have an empty reason.
func unsupportedCondorCommands() map[string]string {
	all := map[string]string{}
	for why, names := range map[string]string{
		"": "transfer_executable stream_output stream_error stream_input " +
			"preserve_relative_paths copy_to_spool run_as_owner load_profile coresize transfer_input transfer_output " +
			"transfer_error",
		"Mail has the same text for all jobs.": "email_attributes",
		"Jobs that have ended are in the history: roost " +
			"history.": "leave_in_queue",
		"walltime limits the time that a " +
			"task runs.": "allowed_job_duration",
		"gpu_memory asks for memory of the card; write other properties of the card as " +
			"requirements.": "require_gpus gpus_minimum_capability gpus_maximum_capability " +
			"gpus_minimum_runtime",
		"Write a time: start_after = \"2026-12-24 " +
			"18:00\".": "deferral_window deferral_prep_time cron_minute cron_hour cron_day_of_month " +
			"cron_month cron_day_of_week cron_window cron_prep_time",
		"The job belongs to the user who submits it.": "accounting_group_user",
		"Tasks in an image have the network of their machine, and the image is pinned when the job is " +
			"submitted.": "docker_network_type docker_pull_policy container_service_names docker_override_entrypoint",
		"The signal before SIGKILL is " +
			"SIGTERM.": "kill_sig remove_kill_sig want_graceful_removal checkpoint_destination",
		"A task that runs out of memory fails; retries runs it again, with the same request.": "retry_request_memory " +
			"retry_request_memory_increase retry_request_memory_max retry_request_disk",
		"There is nothing to be said about how many tasks wait.": "max_idle",
		noControl: "dagman_log skip_if_dataflow use_oauth_services x509userproxy use_x509userproxy " +
			"job_ad_information_attrs encrypt_execute_directory vm_type grid_resource manifest next_job_start_delay " +
			"keep_claim_idle job_machine_attrs " +
			"job_machine_attrs_history_length want_remote_io submit_event_notes submit_event_user_notes " +
			"log_xml ulog_execute_attrs",
	} {
		for _, n := range strings.Fields(names) {
			all[n] = why
		}
	}
	return all
}

// knownCondorCommands returns all known commands.
func knownCondorCommands() []string {
	names := strings.Fields("executable arguments initialdir getenv environment universe machine_count input output " +
		"container_image docker_image container_target_dir error log " +
		"should_transfer_files when_to_transfer_output transfer_input_files transfer_output_files " +
		"transfer_output_remaps output_destination aws_access_key_id_file aws_secret_access_key_file " +
		"gpus_minimum_memory deferral_time preserve_relative_paths " +
		"periodic_hold periodic_hold_reason periodic_hold_subcode periodic_release periodic_vacate periodic_remove " +
		"periodic_remove_reason periodic_remove_subcode on_exit_hold on_exit_hold_reason on_exit_hold_subcode " +
		"on_exit_remove retry_until success_exit_code " +
		"request_cpus request_gpus request_memory request_disk allowed_execute_duration requirements rank priority " +
		"accounting_group nice_user concurrency_limits hold max_materialize max_retries job_lease_duration " +
		"notification notify_user job_max_vacate_time checkpoint_exit_code transfer_checkpoint_files batch_name")
	for n := range unsupportedCondorCommands() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
