package ledger

// The settings of a cell, by name.
const (
	HalfLife                = "half_life"
	DefaultQueue            = "default_queue"
	DefaultQuota            = "default_quota"
	PreemptionRequirements  = "preemption_requirements"
	PreemptionMinRuntime    = "preemption_min_runtime"
	DisruptionsPerJob       = "disruptions_per_job"
	DisruptionsPerCell      = "disruptions_per_cell"
	Reclaim                 = "reclaim"
	Backfill                = "backfill"
	Distributed             = "distributed"
	LostReplacements        = "lost_replacements"
	StreamPatience          = "stream_patience"
	GroupOversubscription   = "group_oversubscription"
	AcceptSurplusEverywhere = "accept_surplus"
)

// Row is one setting in the table of all.
type Row struct {
	Name    string
	Form    Form
	Default string
	Least   float64  // Number, Count, Duration: bounds; a Duration's in seconds
	Most    float64  //
	Choices []string // Choice
	What    string   // for people, beginning with a capital letter and without a full stop
}

// Settings is the table of all settings of a cell: what is not in it cannot be set.
func Settings() []Row {
	const day, year = 24 * 3600, 366 * 24 * 3600
	return []Row{
		{Name: HalfLife, Form: Duration, Default: "1d", Least: 60, Most: year,
			What: "How long it takes a submitter's priority to halve when it uses nothing"},
		{Name: DefaultQueue, Form: QueueName,
			What: "The queue of jobs that name none; empty for no queue"},
		{Name: DefaultQuota, Form: Choice, Default: "unlimited", Choices: []string{"unlimited", "none"},
			What: "What those may submit to batch, production and monitoring for whom no quota is set"},
		{Name: PreemptionRequirements, Form: Expression, Default: "false",
			What: "Whether a batch task may be displaced by one of a submitter that has a better priority; TARGET is the job that wants the place"},
		{Name: PreemptionMinRuntime, Form: Duration, Default: "1h", Least: 0, Most: 30 * day,
			What: "How long a batch task runs before fair share may displace it"},
		{Name: DisruptionsPerJob, Form: Count, Default: "60", Least: 0, Most: mostCount,
			What: "How many tasks of one job may be displaced in an hour"},
		{Name: DisruptionsPerCell, Form: Count, Default: "3600", Least: 0, Most: mostCount,
			What: "How many tasks of the whole pool may be displaced in an hour"},
		{Name: Reclaim, Form: Choice, Default: "aggressive", Choices: []string{"off", "baseline", "medium", "aggressive"},
			What: "How boldly machines may at most lend to others what tasks have asked for and do not use; they lend nothing unless their node file says so"},
		{Name: Backfill, Form: Choice, Default: "easy", Choices: []string{"off", "easy", "conservative"},
			What: "Whether small jobs may start before large ones that wait, where they do not delay the first of them (easy), or any (conservative)"},
		{Name: Distributed, Form: Switch, Default: "off",
			What: "Whether schedds place batch tasks themselves and the negotiator settles conflicts"},
		{Name: LostReplacements, Form: Count, Default: "600", Least: 1, Most: mostCount,
			What: "How many tasks of nodes that are lost are started elsewhere in a minute"},
		{Name: StreamPatience, Form: Duration, Default: "30s", Least: 0, Most: 30 * day,
			What: "How long a stream job that finds no room may wait before it is refused and held"},
		{Name: GroupOversubscription, Form: Switch, Default: "off",
			What: "Whether the static quotas of groups may add up to more than the pool has; otherwise they shrink in proportion"},
		{Name: AcceptSurplusEverywhere, Form: Switch, Default: "off",
			What: "Whether all groups get of what others leave, as if each had accept_surplus"},
	}
}
