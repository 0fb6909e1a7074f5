package qmgr

import (
	"fmt"
	"strings"
)

// RefuseForeign returns an error for an attribute that OpenPBS has and Roost lacks, with
// a replacement; nil for other names.
func RefuseForeign(kind ObjectKind, name string) error {
	for _, f := range foreignAttributes() {
		if f.kind == kind && strings.EqualFold(f.name, name) {
			return fmt.Errorf("%w: %s: %s", errSupport, name, f.replacement)
		}
	}
	return nil
}

type foreignAttribute struct {
	kind              ObjectKind
	name, replacement string
}

// foreignAttributes lists unsupported attributes of pbs_server_attributes(7B),
// pbs_queue_attributes(7B), pbs_node_attributes(7B) and pbs_sched_attributes(7B).
func foreignAttributes() (all []foreignAttribute) {
	add := func(instead string, kind ObjectKind, names ...string) {
		for _, name := range names {
			all = append(all, foreignAttribute{kind, name, instead})
		}
	}
	const node, cycle = "node files say that (roost-node(5))",
		"the negotiator acts when something changes, and not by the clock"
	add(cycle, Server, "scheduler_iteration", "throughput_mode", "job_run_wait")
	add("roost cell set backfill does that", Server, "backfill_depth")
	add("roost cell set backfill does that, for all queues", Queue, "backfill_depth")
	add("order is by bands, fair share and priority (roost shares)", Server, "job_sort_formula",
		"job_sort_formula_threshold", "eligible_time_enable", "max_starve", "node_group_enable",
		"node_group_key", "do_not_span_psets", "only_explicit_psets")
	add("-l place=group=ATTRIBUTE says that for a job", Queue, "node_group_key", "only_explicit_psets",
		"do_not_span_psets")
	add(node, Server, "log_events", "mail_from", "mailer", "job_history_duration", "node_fail_requeue",
		"job_requeue_timeout", "jobscript_max_size", "resend_term_delay", "rpp_retry",
		"rpp_highwater", "rpp_max_pkt_check", "max_job_sequence_id", "attr_update_period", "sync_mom_hookfiles_timeout",
		"default_node", "node_pack")
	add(node, Server, "keep_completed", "job_stat_rate", "poll_jobs", "node_check_rate", "tcp_timeout", "mom_job_sync",
		"auto_node_np", "next_job_number", "submit_hosts", "allow_node_submit")
	add("jobs that have ended stay in the history as long as node files say (roost-node(5))", Queue, "keep_completed")
	add("roost reservation does that, for those who have the capability", Server, "resv_enable", "reserve_retry_time",
		"reserve_retry_init", "resv_post_processing_time", "acl_resv_host_enable",
		"acl_resv_hosts", "acl_resv_group_enable", "acl_resv_groups", "acl_resv_user_enable", "acl_resv_users")
	add("who a user is the kernel of the submit node says", Server, "flatuid", "acl_roots", "acl_host_moms_enable",
		"acl_krb_realm_enable", "acl_krb_realms", "acl_krb_submit_realms",
		"cred_renew_enable", "cred_renew_tool", "cred_renew_period", "cred_renew_cache_period")
	add("there are no licences of Roost", Server, "pbs_license_info", "pbs_license_min", "pbs_license_max",
		"pbs_license_linger_time")
	add("there are no hooks in Python", Server, "python_restart_max_hooks", "python_restart_max_objects",
		"python_restart_min_interval", "max_concurrent_provision", "power_provisioning",
		"show_hidden_attribs", "clear_topjob_estimates_enable")
	add("PBS_DPREFIX and a line of directives in the script say that", Server, "default_qsub_arguments",
		"default_qdel_arguments")
	add("max_queued counts all that is not done", Server, "queued_jobs_threshold", "queued_jobs_threshold_res")
	add("max_queued counts all that is not done", Queue, "queued_jobs_threshold", "queued_jobs_threshold_res")
	add("jobs are routed when something has changed, and not by the clock", Queue, "route_retry_time")
	add("a job waits in a routing queue until a destination takes it, or somebody deletes it", Queue, "route_lifetime")
	add("destinations are tried in their order", Queue, "alt_router")
	add("jobs say it, or their job files (roost-job(5))", Queue, "checkpoint_min")
	add("there is one negotiator for all queues", Queue, "partition", "hasnodes", "require_cred", "require_cred_enable",
		"reserved_expedite", "reserved_sync", "rendezvous_retry", "max_borrow")
	add(node, Node, "resources_available", "Mom", "Port", "queue", "sharing", "no_multinode_jobs", "resv_enable",
		"Priority", "pcpus", "np", "properties", "ntype", "max_running",
		"max_user_run", "max_group_run", "provision_enable", "current_aoe", "current_eoe", "power_provisioning",
		"poweroff_eligible", "partition", "vnode_pool")
	return all
}
