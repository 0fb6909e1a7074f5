package ledger

import "github.com/roost-batch/roost"

// The settings of a cell, by name.
const (
	SettingHalfLife                = "half_life"
	SettingDefaultQueue            = "default_queue"
	SettingDefaultQuota            = "default_quota"
	SettingPreemptionRequirements  = "preemption_requirements"
	SettingPreemptionMinRuntime    = "preemption_min_runtime"
	SettingDisruptionsPerJob       = "disruptions_per_job"
	SettingDisruptionsPerCell      = "disruptions_per_cell"
	SettingReclaim                 = "reclaim"
	SettingBackfill                = "backfill"
	SettingDistributed             = "distributed"
	SettingLostTaskRate            = "lost_replacements"
	SettingStreamPatience          = "stream_patience"
	SettingGroupOversubscription   = "group_oversubscription"
	SettingAcceptSurplusEverywhere = "accept_surplus"
	SettingRestricted              = "restricted"
	SettingElsewhereWeight         = "elsewhere_weight"
	SettingScore                   = "score"
	SettingMixBands                = "mix_bands"
	SettingFailureDomains          = "failure_domains"
	SettingOverQuota               = "over_quota"
	SettingDefragment              = "defragment"
	SettingDefragmentAfter         = "defragment_after"
	SettingPreemptInBand           = "preempt_in_band"
	SettingPreemptInBandStep       = "preempt_in_band_step"
	SettingPreemptInBandRuntime    = "preempt_in_band_min_runtime"
	SettingPreemptInBandAttempts   = "preempt_in_band_attempts"
	SettingOversellProduction      = "oversell_production"
	SettingMPINetwork              = "mpi_network"
)

// OverQuotaLowers is the value of [SettingOverQuota] with which batch jobs beyond a quota
// are taken, with a lower priority.
const OverQuotaLowers = "lower"

// SettingInfo is one row of the table of settings.
type SettingInfo struct {
	Name        string
	Form        SettingForm
	Default     string
	Min         float64  // FormNumber, FormCount and FormDuration: lower bound; durations in seconds
	Max         float64  // FormNumber, FormCount and FormDuration: upper bound; durations in seconds
	Choices     []string // FormChoice: the choices
	Description string   // for people, beginning with a capital letter and without a full stop
}

// Settings returns the table of all settings of a cell. No other setting exists.
func Settings() []SettingInfo {
	const day, year = 24 * 3600, 366 * 24 * 3600
	return []SettingInfo{
		{Name: SettingHalfLife, Form: FormDuration, Default: "1d", Min: 60, Max: year,
			Description: "How long it takes a submitter's priority to halve when it uses nothing"},
		{Name: SettingElsewhereWeight, Form: FormNumber, Default: "0", Min: 0, Max: 1,
			Description: "What a core that a submitter uses in another pool counts for its priority, beside 1 for " +
				"a core of this pool"},
		{Name: SettingDefaultQueue, Form: FormQueueName,
			Description: "The queue of jobs that name none; empty for no queue"},
		{Name: SettingDefaultQuota, Form: FormChoice, Default: "unlimited", Choices: []string{"unlimited", "none"},
			Description: "What users without a quota may submit to batch, production and monitoring"},
		{Name: SettingPreemptionRequirements, Form: FormExpression, Default: "false",
			Description: "Whether a batch task may be displaced by one of a submitter that has a better priority; " +
				"TARGET is the job that would take its place"},
		{Name: SettingPreemptionMinRuntime, Form: FormDuration, Default: "1h", Min: 0, Max: 30 * day,
			Description: "How long a batch task runs before fair share may displace it"},
		{Name: SettingDisruptionsPerJob, Form: FormCount, Default: "60", Min: 0, Max: maxCount,
			Description: "How many tasks of one job may be displaced in an hour"},
		{Name: SettingDisruptionsPerCell, Form: FormCount, Default: "3600", Min: 0, Max: maxCount,
			Description: "How many tasks of the whole pool may be displaced in an hour"},
		{Name: SettingReclaim, Form: FormChoice, Default: "aggressive",
			Choices: []string{"off", "baseline", "medium", "aggressive"},
			Description: "How boldly machines may at most reclaim what tasks have asked for and do not use; a " +
				"machine reclaims only if its node file says so"},
		{Name: SettingBackfill, Form: FormChoice, Default: "easy", Choices: []string{"off", "easy", "conservative"},
			Description: "Whether small jobs may start before large ones that wait, where they do not delay " +
				"the first of them (easy), or any (conservative)"},
		{Name: SettingDistributed, Form: FormSwitch, Default: "off",
			Description: "Whether schedds place batch tasks themselves and the negotiator resolves conflicts"},
		{Name: SettingLostTaskRate, Form: FormCount, Default: "600", Min: 1, Max: maxCount,
			Description: "How many tasks of lost nodes are started elsewhere in a minute"},
		{Name: SettingStreamPatience, Form: FormDuration, Default: "30s", Min: 0, Max: 30 * day,
			Description: "How long a stream job that finds no room may wait before it is refused and held"},
		{Name: SettingGroupOversubscription, Form: FormSwitch, Default: "off",
			Description: "Whether the static quotas of groups may add up to more than the pool has; otherwise they " +
				"shrink in proportion"},
		{Name: SettingAcceptSurplusEverywhere, Form: FormSwitch, Default: "off",
			Description: "Whether all groups may use what others leave, as if each had accept_surplus"},
		{Name: SettingRestricted, Form: FormCapabilities,
			Description: "Capabilities without which users may not have such jobs: services, device:gpu, or " +
				"device:NAME for a limit of that name; empty for none"},
		{Name: SettingScore, Form: FormChoice, Default: "hybrid",
			Choices: []string{"hybrid", "best-fit", "worst-fit", "fragmentation", "least-loaded"},
			Description: "Which of the machines that suit a task equally gets it: where least is stranded (hybrid), " +
				"the fullest, the emptiest, where the fewest GPUs become useless, or the one with the least load"},
		{Name: SettingMixBands, Form: FormSwitch, Default: "off",
			Description: "Whether production is spread and other tasks are placed beside it, so that it finds cores " +
				"at its peaks"},
		{Name: SettingFailureDomains, Form: FormAttributes,
			Description: "Machine attributes over whose values the tasks of each job in production and monitoring " +
				"are spread, the widest first, as in Power,Rack,Machine; empty for none"},
		{Name: SettingDefragment, Form: FormChoice, Default: "off", Choices: []string{"off", "advise", "on"},
			Description: "Whether batch tasks with checkpoints move to other machines to make room for a larger one " +
				"that finds room on no machine; with advise, roost why says which would move"},
		{Name: SettingDefragmentAfter, Form: FormDuration, Default: "10m", Min: 0, Max: 30 * day,
			Description: "How long a task waits before others move for it, and how long a task runs before it moves"},
		{Name: SettingPreemptInBand, Form: FormSwitch, Default: "off",
			Description: "Whether a task of batch or free may displace running tasks of its own submitter in its " +
				"band that have a lower priority"},
		{Name: SettingPreemptInBandStep, Form: FormCount, Default: "1", Min: 1,
			Max:         roost.MaxPriority - roost.MinPriority,
			Description: "By how much the priority of a task must be higher to displace another in its band"},
		{Name: SettingPreemptInBandRuntime, Form: FormDuration, Default: "10m", Min: 0, Max: 30 * day,
			Description: "How long a task runs before a higher priority in its band may displace it"},
		{Name: SettingPreemptInBandAttempts, Form: FormCount, Default: "3", Min: 0, Max: maxCount,
			Description: "After how many starts a higher priority in its band no longer displaces a task"},
		{Name: SettingOverQuota, Form: FormChoice, Default: "refuse", Choices: []string{"refuse", OverQuotaLowers},
			Description: "Whether batch jobs beyond a quota are refused, or taken with a priority that is lower by " +
				"as much as the quota is exceeded"},
		{Name: SettingOversellProduction, Form: FormSwitch, Default: "on",
			Description: "Whether the quotas of production and monitoring may add up to more than the pool has"},
		{Name: SettingMPINetwork, Form: FormNetwork,
			Description: "The network that MPI programs talk on where machines have several, as in 10.1.0.0/16; " +
				"empty for any"},
	}
}
