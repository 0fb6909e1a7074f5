package ledger

// ShareReport is the state of all submitters.
type ShareReport struct {
	Cores      float64          `json:"cores"`      // of the pool
	FreeCores  float64          `json:"free_cores"` // cores in no claim
	HalfLife   float64          `json:"half_life_seconds"`
	Submitters []SubmitterUsage `json:"submitters"` // best priority first
}

// SubmitterUsage is the state of one submitter. Cores are those that its dominant share
// is worth.
type SubmitterUsage struct {
	Name              string   `json:"name"`
	Group             string   `json:"group,omitempty"`
	User              string   `json:"user"`
	EffectivePriority float64  `json:"effective_priority"` // smaller is better
	RealPriority      float64  `json:"real_priority"`
	Factor            float64  `json:"factor"`
	Floor             *float64 `json:"floor,omitempty"`   // cores
	Ceiling           *float64 `json:"ceiling,omitempty"` // cores
	Cores             float64  `json:"cores"`             // in use now
	CoreHours         float64  `json:"core_hours"`        // total used
	// its part of the pool by fair share, if all who use or want something wanted all
	PoolShare float64 `json:"share"`
	// cores more than it has: what is free, or due to it, within its ceiling and its
	// group's quota
	CouldGetCores float64 `json:"could_get_cores"`
	IsWaiting     bool    `json:"waits"` // it has waiting requests
}
