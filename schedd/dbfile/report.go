package dbfile

// Report says what is damaged in a file, and what was done about it, or would be.
type Report struct {
	Path    string
	Damages []string // what is damaged, by name
	Actions []string // what is taken out, held, or made anew
	Aside   string   // where the damaged file is; "": nothing was changed
}
