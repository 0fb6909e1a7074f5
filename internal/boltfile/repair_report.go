package boltfile

// RepairReport says what is damaged in a file, and what was done about it, or would be.
type RepairReport struct {
	Path        string
	Damages     []string // what is damaged, by name
	Actions     []string // what is taken out, held, or made anew
	DamagedPath string   // where the damaged file is; "": nothing was changed
}
