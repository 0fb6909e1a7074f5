package document

// OwnMachine is what the pool does on a machine, for its owner alone. The documents of
// the pool say nothing of when somebody was there.
type OwnMachine struct {
	Version        int            `json:"v"`
	State          string         `json:"state"` // in words: whose the machine is now
	Available      bool           `json:"lent"`
	Pause          *MachinePause  `json:"pause"`
	Busy           string         `json:"busy"`
	Idle           *float64       `json:"idle_seconds"` // since it was last touched; null: it was not
	Policy         string         `json:"policy"`
	Unavailable    string         `json:"not_lent"` // why; empty: see State
	ForeignCPUs    float64        `json:"foreign_cpus"`
	MemoryPressure float64        `json:"memory_pressure"`
	OnBattery      bool           `json:"on_battery"`
	Hot            bool           `json:"hot"`
	Game           bool           `json:"game"`
	Asleep         bool           `json:"asleep"`
	Today          DonatedStats   `json:"today"`
	Freezes        []OwnerFreeze  `json:"freezes"` // the newest first
	Tasks          []MachineTask  `json:"tasks"`
	Sources        []SourceHealth `json:"sources"`
}

// MachinePause is for how long its owner keeps the pool off a machine.
type MachinePause struct {
	Until  string `json:"until,omitempty"` // empty: for good
	By     string `json:"by"`
	Since  string `json:"since"`
	Reason string `json:"reason,omitempty"`
}

// DonatedStats is what a machine has given since midnight, and how fast it stopped.
type DonatedStats struct {
	CoreHours     float64 `json:"core_hours"`
	Interruptions uint32  `json:"interruptions"`
	WorstFreeze   float64 `json:"worst_freeze_seconds"`
}

// OwnerFreeze is one time that tasks were stopped for the owner of a machine.
type OwnerFreeze struct {
	Time  string  `json:"time"`
	Took  float64 `json:"took_seconds"` // until all stood still
	Tasks uint32  `json:"tasks"`
}

// MachineTask is a task on a machine.
type MachineTask struct {
	Task   string  `json:"task"`
	Name   string  `json:"name"`
	Owner  string  `json:"owner"`
	State  string  `json:"state"`
	CPUs   float64 `json:"cpus"`
	Memory int64   `json:"memory_bytes"`
	GPUs   uint32  `json:"gpus"`
	Since  string  `json:"since"`
}

// SourceHealth is a source by which a machine notices its owner.
type SourceHealth struct {
	Name     string   `json:"name"`
	Health   string   `json:"health"`
	Text     string   `json:"text"`
	Hardware bool     `json:"hardware"`
	Idle     *float64 `json:"idle_seconds,omitempty"`
}
