package roost

// Attributes of a job ad with what is done with a task under a condition. Each is a
// ClassAd expression (HTCondor manual, condor_submit, "Policy Commands"), and each reason
// a text, which has the condition as its reason if it is absent.
const (
	AttrPeriodicHold    = "PeriodicHold"
	AttrPeriodicRelease = "PeriodicRelease"
	AttrPeriodicRemove  = "PeriodicRemove"
	AttrPeriodicVacate  = "PeriodicVacate"
	AttrOnExitHold      = "OnExitHold"
	AttrOnExitRemove    = "OnExitRemove"       // false: a task that has ended runs again
	AttrSuccessCode     = "JobSuccessExitCode" // the exit code that is success; absent: 0 (HTCondor)

	AttrPeriodicHoldReason   = "PeriodicHoldReason"
	AttrPeriodicRemoveReason = "PeriodicRemoveReason"
	AttrOnExitHoldReason     = "OnExitHoldReason"
)

// PolicyCondition is a condition of a job, as its users write it.
type PolicyCondition struct {
	Setting, Attr string
	ReasonAttr    string // of its reason; empty: it has none
}

// PolicyConditions returns all conditions that a job may have.
func PolicyConditions() []PolicyCondition {
	return []PolicyCondition{
		{"periodic_hold", AttrPeriodicHold, AttrPeriodicHoldReason},
		{"periodic_release", AttrPeriodicRelease, ""},
		{"periodic_remove", AttrPeriodicRemove, AttrPeriodicRemoveReason},
		{"periodic_vacate", AttrPeriodicVacate, ""},
		{"on_exit_hold", AttrOnExitHold, AttrOnExitHoldReason},
		{"on_exit_remove", AttrOnExitRemove, ""},
	}
}
