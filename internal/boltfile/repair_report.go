package boltfile

// RepairReport lists the damages of a file, and what a repair did about them, or would
// do.
type RepairReport struct {
	Path        string
	Damages     []string // descriptions of the damages
	Actions     []string // what is removed, held, or created again
	DamagedPath string   // where the damaged file is; "": nothing was changed
}
